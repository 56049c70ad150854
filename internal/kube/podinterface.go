package kube

import (
	"encoding/json"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// maxPodNetworks is more than the two that a pod has.
const maxPodNetworks = 8

// furtherInterfaces are a pod's interfaces beside the default network's, by its annotation: the first one of which all
// can be read. Its key is that of a definition in the pod's namespace.
func furtherInterfaces(namespace, text string) []world.Interface {
	byKey := networksByName(text)
	delete(byKey, ref.DefaultNetwork)
	keys, tooMany := atMost(slices.Sorted(maps.Keys(byKey)), maxPodNetworks)
	if tooMany != nil {
		return nil
	}
	for _, key := range keys {
		var own podNetwork
		of := strings.HasPrefix(key, namespace+"/")
		if !of || json.Unmarshal(byKey[key], &own) != nil || own.Role != "primary" {
			continue
		}
		i := world.Interface{Network: own.Network, MAC: own.MACAddress, IPs: own.readIPs()}
		named := i.Network != "" && i.Network != ref.DefaultNetwork && isNetworkName(i.Network)
		if named && isMAC(i.MAC) && len(i.IPs) > 0 {
			return []world.Interface{i}
		}
	}
	return nil
}

// isMAC says whether a text is the hardware address of one interface, as Egret writes it.
func isMAC(text string) bool {
	mac, err := net.ParseMAC(text)
	return err == nil && len(mac) == 6 && mac[0]&1 == 0 && mac.String() == text
}

// readIPs are the addresses of an entry; none if one of them cannot be read.
func (n podNetwork) readIPs() []netip.Addr {
	list, tooMany := atMost(n.IPAddresses, maxPodIPs)
	prefixes, err := parsePrefixes(list)
	if err != nil || tooMany != nil {
		return nil
	}
	var out []netip.Addr
	for _, p := range prefixes {
		out = append(out, p.Addr())
	}
	return out
}
