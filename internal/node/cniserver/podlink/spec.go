package podlink

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"strings"
)

// Spec is what a pod's interface must be.
type Spec struct {
	HostIface string // on the node, at most 15 characters
	NetNS     string // path of the pod's network namespace
	IfName    string // in the pod
	MAC       net.HardwareAddr
	MTU       int
	Addrs     []netip.Prefix // the pod's addresses with their subnets' lengths
	Gateways  []netip.Addr   // one default route each
	RouterMAC net.HardwareAddr
	Routes    []Route // beside the default ones
	// ChecksumInSoftware has the pod's kernel compute checksums: OVS' userspace datapath forwards packets of a veth
	// whose checksum is left to a device as they are, and the receiver drops them.
	ChecksumInSoftware bool
}

// Route is a way through a pod's interface.
type Route struct {
	To  netip.Prefix
	Via netip.Addr
}

// allRoutes are all those of an interface, the default ones first.
func (s Spec) allRoutes() (all []Route) {
	for _, g := range s.Gateways {
		all = append(all, Route{DefaultDestination(g), g})
	}
	return append(all, s.Routes...)
}

// DefaultDestination is the destination of a default route by a gateway.
func DefaultDestination(gateway netip.Addr) netip.Prefix {
	if gateway.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

// PrimaryIfName is the name in a pod of its interface in its namespace's own network, as OVN-Kubernetes has it.
const PrimaryIfName = "ovn-udn1"

// PrimaryHostName is that interface's name on the node.
func PrimaryHostName(containerID string) string { return HostName(containerID + "/" + PrimaryIfName) }

// HostName is the name on the node of a container's interface: always the same for the same container ID, and 14
// characters, of which 48 bits are the ID's hash. Prefixes of IDs are not used: IDs need not be random.
func HostName(containerID string) string {
	sum := sha256.Sum256([]byte(containerID))
	return hostPrefix + hex.EncodeToString(sum[:hashBytes])
}

const (
	hostPrefix = "eg"
	hashBytes  = 6
)

// isHostName says whether a name has the form of HostName's.
func isHostName(name string) bool {
	digits, is := strings.CutPrefix(name, hostPrefix)
	sum, err := hex.DecodeString(digits)
	return is && err == nil && len(sum) == hashBytes && digits == strings.ToLower(digits)
}

// HardwareAddr is the MAC that goes with a pod's addresses, as OVN-Kubernetes makes it: 0a:58 and the four bytes of the
// IPv4 address; of an IPv6-only pod, of the address's SHA-256.
func HardwareAddr(addrs []netip.Addr) net.HardwareAddr {
	mac := net.HardwareAddr{0x0a, 0x58, 0, 0, 0, 0}
	for _, a := range addrs {
		if a.Is4() {
			copy(mac[2:], a.AsSlice())
			return mac
		}
	}
	for _, a := range addrs {
		sum := sha256.Sum256([]byte(a.String()))
		copy(mac[2:], sum[:4])
	}
	return mac
}

// AddressOf is the IPv4 address that a MAC was made of, if it was made of one.
func AddressOf(mac string) (netip.Addr, bool) {
	m, err := net.ParseMAC(mac)
	if err != nil || len(m) != 6 || m[0] != 0x0a || m[1] != 0x58 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(m[2:])), true
}
