package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolSetTxChecksum is ETHTOOL_STXCSUM of linux/ethtool.h.
const ethtoolSetTxChecksum = 0x17

// ethtoolValue is struct ethtool_value of linux/ethtool.h. The second field is 0: off.
type ethtoolValue struct{ command, _ uint32 }

// ifreqData is struct ifreq with the pointer of its union (linux/if.h), 40 bytes on 64-bit machines.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data *ethtoolValue
	_    [16]byte
}

// txChecksumOff makes the kernel fill in checksums itself on a link of the present network namespace, as
// `ethtool -K LINK tx off`: on a veth they are otherwise left empty, and OVS' userspace datapath passes them on so.
func txChecksumOff(link string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req := ifreqData{data: &ethtoolValue{command: ethtoolSetTxChecksum}}
	copy(req.name[:unix.IFNAMSIZ-1], link)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
		uintptr(unsafe.Pointer(&req))); errno != 0 {
		return fmt.Errorf("transmit checksums of %s: %w", link, errno)
	}
	return nil
}
