package podlink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// sealingSysctls are the settings of the node's end, under /proc/sys/net, by which the node's own stack takes nothing
// from it and answers nothing there. The kernel sees the packets that OVS' userspace datapath reads from a link, too: a
// pod that sends to the hardware address of the node's end would bypass OVN and its addresses, and the node would
// forward that. A link without addresses has no route back, so that any rp_filter drops what is IPv4 (Linux 6.1,
// __fib_validate_source); arp_ignore is for the questions that this lets by, those without a sender.
func sealingSysctls() map[string]string {
	return map[string]string{
		"ipv6/conf/%s/disable_ipv6": "1",
		"ipv4/conf/%s/rp_filter":    "1",
		"ipv4/conf/%s/arp_ignore":   "8",
	}
}

// Seal keeps the node's own stack off the node's end of a pair. A kernel without IPv6 has nothing to be kept off.
func Seal(hostIface string) error {
	for setting, value := range sealingSysctls() {
		path := filepath.Join("/proc/sys/net", fmt.Sprintf(setting, hostIface))
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("keep the node's own network off veth %s: %w", hostIface, err)
		}
	}
	return nil
}
