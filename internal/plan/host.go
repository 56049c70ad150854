package plan

import (
	"net/netip"
	"strings"
)

// None is the value of a table whose rows are all key: an ip rule exists or it does not.
type None struct{}

// Port is a port of an OVS bridge, by name.
type Port struct{ Bridge, Name string }

// PortSpec says what a Port is. ExternalIDs hold `iface-id`, which binds a logical switch port.
type PortSpec struct {
	Type        string // OVSDB interface type: "internal", "geneve", or "" for a system device
	MAC         string // of an internal port; "" leaves OVS' own
	MTU         int    // 0 leaves the default
	ExternalIDs string // "k=v,k=v", sorted: comparable
	Options     string // of a tunnel, in the same form: key, remote_ip, local_ip
	BFD         string // of a tunnel, in the same form; "" runs no BFD (RFC 5880) on it
}

// Addr is one address of a link.
type Addr struct {
	Dev    string
	Prefix netip.Prefix
}

// AddrSpec says how an address is held. Deprecated is preferred_lft 0: the kernel then never picks it as a source
// itself (RFC 4862 5.5.4); NoDAD skips duplicate address detection (IPv6).
type AddrSpec struct{ NoDAD, Deprecated bool }

// RouteKey is what the kernel tells routes apart by.
type RouteKey struct {
	Table int
	Dst   netip.Prefix
}

// Route is a unicast route's target. Via may be zero: on link; an IPv4 route's may be of IPv6. Src is the preferred
// source, or zero.
type Route struct {
	Dev string
	Via netip.Addr
	Src netip.Addr
	MTU int
	// OnLink: Via is reached by Dev, though no route says so.
	OnLink bool
}

// Rule is one policy routing rule. Src and Dst may be zero: any. Mark 0 with Mask 0 is any.
type Rule struct {
	V6              bool
	Priority, Table int
	Mark, Mask      uint32
	Src, Dst        netip.Prefix
	In              string // the link that packets come in by; "": any, and the host's own
}

// NFTChain is a chain of our nftables table of that family ("inet" or "netdev").
type NFTChain struct{ Family, Name string }

// NFTChainSpec is a base chain's hook; zero for a regular chain.
type NFTChainSpec struct{ Type, Hook, Priority, Device, Policy string }

// NFTRule is one rule of a chain. Name orders the rules of a chain and names the rule in comments.
type NFTRule struct {
	Chain NFTChain
	Name  string
}

// NFTSet is a named set or map of the inet table.
type NFTSet struct{ Name string }

// Contents of sets that lose elements first. A name ends with them and the family.
const (
	PartlyTranslated = "partly"       // pods that the host translates on their way to some destinations alone
	Destinations     = "destinations" // these
)

// LosesFirst reports whether elements leave the set while a plan grows, in the transaction in which others come.
// Otherwise a pod that leaves would meet a destination that comes, or the reverse, and get an address that no object
// gives it there. To destinations that nobody wants no pod comes, and the leak filter of pods that leave needs them.
// The name tells, so that the sets of a previous process are known, too.
func (s NFTSet) LosesFirst(isWanted bool) bool {
	has, _, _ := strings.Cut(s.Name[strings.LastIndex(s.Name, "/")+1:], ".")
	return has == PartlyTranslated || has == Destinations && isWanted
}

// NFTSetSpec is a set's type, or a map's when Value is not "". Interval sets hold prefixes and ranges "FIRST-LAST"
// (disjoint ones: the kernel refuses overlaps). With TypeOf, Key and Value are expressions that have these types:
// some types have no name (nft(8), "typeof").
type NFTSetSpec struct {
	Key, Value       string
	Interval, TypeOf bool
}

// NFTElem is one element of a set or map; Key joins concatenated parts by " . ".
type NFTElem struct{ Set, Key string }

// Flow is what OpenFlow tells flows apart by. Match is in ovs-ofctl syntax, with ports by name in braces
// (`in_port={eth0}`): the plane puts the numbers in.
type Flow struct {
	Bridge          string
	Table, Priority int
	Match           string
}

// Announcement is an address that this node tells its link about: gratuitous ARP (RFC 5227) or unsolicited NA (RFC 4861
// 7.2.6).
type Announcement struct {
	Dev string
	IP  netip.Addr
	MAC string
}

// Datagram is an address and port that packets of a protocol whose connections nothing ends are translated from, and
// what they may be translated to: by this host's kernel, or with OVN set by a load balancer of OVN.
type Datagram struct {
	Protocol string // "udp" or "sctp"
	From, To netip.AddrPort
	OVN      bool
	Foreign  bool // by rules of another program, which come and go when that program says
}

// Frontend returns the address and port that packets come with, whatever they are translated to, and by whom.
func (d Datagram) Frontend() Datagram { return Datagram{Protocol: d.Protocol, From: d.From} }

// HealthCheck is a TCP port at which load balancers ask: of one Service whether this node serves it
// (Service.spec.healthCheckNodePort), or of all whether it takes connections.
type HealthCheck struct{ Port uint16 }

// HealthSpec is what they are told: how many ready endpoints the Service has on this node, or where Node is set,
// whether that node takes connections.
type HealthSpec struct {
	Namespace, Service string
	Endpoints          int
	Node               string
	Eligible           bool
}

// Sysctl is a kernel setting by its dotted path below /proc/sys, in which a slash stands for a dot in a name; the plane
// writes it, and undoes it only when Egret is removed from the node.
type Sysctl struct{ Key string }

// LinkSetting is the key of an IPv4 setting of one link, which may be a VLAN ("bond0.100").
func LinkSetting(link, setting string) string {
	return "net.ipv4.conf." + strings.ReplaceAll(link, ".", "/") + "." + setting
}

// Accept lets packets that come in from a device, or go out to it, through the host's own FORWARD chain: all, or those
// of one source. With a port it lets what comes to that TCP port through the host's INPUT chain.
type Accept struct {
	V6  bool
	Dev string
	Out bool
	Src netip.Addr // zero for all
	// Port is the host's own.
	Port uint16
}
