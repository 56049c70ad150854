package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
)

// Ports and names that are the same in every sandbox.
const (
	APIPort      = 6443
	ClientIPPort = 8080      // of external hosts: http://IP:8080/clientip
	uplink       = "eth0"    // of nodes, external hosts and the control plane
	bridge       = "fabric0" // of the primary network, in the fabric's network namespace
)

// subnet is one network of the sandbox and the families' numbers in it.
type subnet struct {
	prefix  netip.Prefix
	pattern string // of an address; %d is the member's number, written in decimal digits in both families
}

// layout is the plan of a sandbox: names and addresses, nothing that exists.
type layout struct {
	options   Options
	primary   []subnet
	secondary [][]subnet // by network, from the one of eth1 on
	pods      []podRange
	service   []netip.Prefix
}

// podRange is the pods' network: a subnet of bits length for each node.
type podRange struct {
	prefix netip.Prefix
	bits   int
}

// nodeSubnet is the subnet of the node with this number: the range's first subnet is number 0.
func (r podRange) nodeSubnet(number int) (netip.Prefix, error) {
	bytes := r.prefix.Addr().AsSlice()
	if last := r.bits/8 - 1; number < 256 && r.bits%8 == 0 && r.prefix.Bits() <= last*8 {
		bytes[last] = byte(number)
		addr, _ := netip.AddrFromSlice(bytes)
		return netip.PrefixFrom(addr, r.bits), nil
	}
	return netip.Prefix{}, fmt.Errorf("no subnet %d of length %d in %s", number, r.bits, r.prefix)
}

// String is the form of the agent's flag: prefix/length.
func (r podRange) String() string { return fmt.Sprintf("%s/%d", r.prefix, r.bits) }

// defaultDestination is the default route's destination in the prefix's family.
func defaultDestination(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

// endpoint is a namespace on the fabric.
type endpoint struct {
	name  string // as users write it
	netns string // name below /run/netns
	port  string // its interface on the fabric bridge
	mac   net.HardwareAddr
	ips   []netip.Addr
	// secondary are its links into the secondary networks.
	secondary []fabricLink
}

// fabricLink is an endpoint's link into one network.
type fabricLink struct {
	bridge, port, name string // in the fabric, in the fabric, in the endpoint
	mac                net.HardwareAddr
	ips                []netip.Prefix
}

func newLayout(o Options) layout {
	l := layout{options: o}
	if o.IPFamily != IPv6 {
		l.primary = append(l.primary, subnet{netip.MustParsePrefix("172.18.0.0/24"), "172.18.0.%d"})
		l.pods = append(l.pods, podRange{netip.MustParsePrefix("10.244.0.0/16"), 24})
		l.service = append(l.service, netip.MustParsePrefix("10.96.0.0/16"))
	}
	if o.IPFamily != IPv4 {
		l.primary = append(l.primary,
			subnet{netip.MustParsePrefix("fc00:f853:ccd:e793::/64"), "fc00:f853:ccd:e793::%d"})
		l.pods = append(l.pods, podRange{netip.MustParsePrefix("fd00:10:244::/48"), 64})
		l.service = append(l.service, netip.MustParsePrefix("fd00:10:96::/112"))
	}
	for i := 1; i <= o.SecondaryNetworks; i++ {
		l.secondary = append(l.secondary, secondarySubnets(o.IPFamily, i))
	}
	return l
}

// secondarySubnets are those of the network of eth<i>.
func secondarySubnets(family IPFamily, i int) []subnet {
	var out []subnet
	if family != IPv6 {
		out = append(out, subnet{netip.MustParsePrefix(fmt.Sprintf("172.19.%d.0/24", i)), fmt.Sprintf("172.19.%d.", i) +
			"%d"})
	}
	if family != IPv4 {
		out = append(out, subnet{netip.MustParsePrefix(fmt.Sprintf("fc00:f853:cce:%d::/64", i)),
			fmt.Sprintf("fc00:f853:cce:%d::", i) + "%d"})
	}
	return out
}

// numbers in the primary network.
const (
	gatewayNumber      = 1
	firstNodeNumber    = 2
	firstHostNumber    = 100
	controlPlaneNumber = 250
)

func (l layout) primaryAddresses(number int) []netip.Addr {
	var ips []netip.Addr
	for _, s := range l.primary {
		ips = append(ips, s.addressOf(number))
	}
	return ips
}

func (s subnet) addressOf(number int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf(s.pattern, number))
}

func (l layout) endpointOf(short string, number int) endpoint {
	full := l.options.Name + "-" + short
	return endpoint{name: full, netns: full, port: short, mac: hardwareAddr(0, number), ips: l.primaryAddresses(number)}
}

// endpointEverywhere is an endpoint with a link into each secondary network.
func (l layout) endpointEverywhere(short string, number int) endpoint {
	e := l.endpointOf(short, number)
	for i, subnets := range l.secondary {
		link := fabricLink{secondaryBridge(i + 1), fmt.Sprintf("%s-%d", short, i+1), fmt.Sprintf("eth%d", i+1),
			hardwareAddr(i+1, number), nil}
		for _, s := range subnets {
			link.ips = append(link.ips, netip.PrefixFrom(s.addressOf(number), s.prefix.Bits()))
		}
		e.secondary = append(e.secondary, link)
	}
	return e
}

// secondaryBridge is the bridge of the network of eth<i>, in the fabric's network namespace.
func secondaryBridge(i int) string { return fmt.Sprintf("fabric%d", i) }

// hardwareAddr is a locally administered address, in the network of eth<i>. A network card keeps its own over a reboot,
// and neighbours remember it.
func hardwareAddr(i, number int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0xe6, 0xac, 0x12, byte(i), byte(number)}
}

func (l layout) fabricNetns() string { return l.options.Name + "-fabric" }

// gatewayAddresses are the fabric's own addresses: the default routes of everything on it.
func (l layout) gatewayAddresses() []netip.Addr { return l.primaryAddresses(gatewayNumber) }

func (l layout) controlPlane() endpoint { return l.endpointOf("cp", controlPlaneNumber) }

func (l layout) nodeEndpoints() []endpoint {
	var nodes []endpoint
	for i := range l.options.Nodes {
		nodes = append(nodes, l.endpointEverywhere(fmt.Sprintf("n%d", i+1), firstNodeNumber+i))
	}
	return nodes
}

func (l layout) hostEndpoints() []endpoint {
	var hosts []endpoint
	for i := range l.options.ExternalHosts {
		hosts = append(hosts, l.endpointEverywhere(fmt.Sprintf("ext%d", i+1), firstHostNumber+i))
	}
	return hosts
}

// withPrimaryLength gives an address the length of the primary subnet it is in.
func (l layout) withPrimaryLength(a netip.Addr) netip.Prefix {
	for _, s := range l.primary {
		if s.prefix.Contains(a) {
			return netip.PrefixFrom(a, s.prefix.Bits())
		}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

func (l layout) prefixedAll(as []netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range as {
		out = append(out, l.withPrimaryLength(a))
	}
	return out
}

// apiURL is the API server as nodes and pods reach it.
func (l layout) apiURL() string {
	return "https://" + netip.AddrPortFrom(l.controlPlane().ips[0], APIPort).String()
}

// dnsIPs are the cluster's DNS servers: the tenth address of each Service network.
func (l layout) dnsIPs() []netip.Addr {
	var ips []netip.Addr
	for _, p := range l.service {
		a := p.Addr()
		for range 10 {
			a = a.Next()
		}
		ips = append(ips, a)
	}
	return ips
}

// Folders and files of the state.

func (l layout) stateDir() string { return l.options.sandboxDir() }

func (l layout) stateFile() string { return filepath.Join(l.stateDir(), "sandbox.json") }

func (l layout) controlPlaneDir() string { return filepath.Join(l.stateDir(), "cp") }

func (l layout) adminKubeconfig() string {
	return filepath.Join(l.controlPlaneDir(), "admin.kubeconfig")
}

func (l layout) hostsDir() string { return filepath.Join(l.stateDir(), "hosts") }

// routerDir has a short name: sockets are in it, whose paths Linux bounds (unix(7)).
func (l layout) routerDir() string { return filepath.Join(l.stateDir(), "router") }

func (l layout) nodeDir(node string) string { return filepath.Join(l.stateDir(), "nodes", node) }
