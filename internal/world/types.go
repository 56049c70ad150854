package world

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/ref"
)

// Node is a node of the cluster: its labels and what its annotations say, parsed.
type Node struct {
	Name, UID string
	Labels    map[string]string
	// ID is the node's number (k8s.ovn.org/node-id); 0 until the controller has given one.
	ID int
	// Subnets are the node's pod subnets, one a family (k8s.ovn.org/node-subnets).
	Subnets []netip.Prefix
	// Further are the node's parts of networks beside the default one, by network.
	Further map[string]NodeNetwork
	// Primary are the node's addresses on its primary network, with its length (k8s.ovn.org/node-primary-ifaddr).
	Primary []netip.Prefix
	// InternalIPs are the node's addresses as its kubelet tells them (status.addresses), in its order.
	InternalIPs []netip.Addr
	// HostAddrs are all addresses of the host, egress IPs left out (k8s.ovn.org/host-cidrs).
	HostAddrs []netip.Addr
	// CIDRs are the same, with the length of their subnets where egress IPs can be.
	CIDRs []netip.Prefix
	// Confirmed are networks that people say the node has (egret.k8s.ovn.org/secondary-networks).
	Confirmed []netip.Prefix
	// LetsExternalIPs: people let Services' spec.externalIPs name the node's addresses
	// (egret.k8s.ovn.org/external-ips).
	LetsExternalIPs bool
	// Gateways are the next hops of the host's default routes (k8s.ovn.org/l3-gateway-config).
	Gateways []netip.Addr
	// ChassisID is the OVN system-id (k8s.ovn.org/node-chassis-id); "" until the agent has published it.
	ChassisID string
	Ready     bool
	// BootID is of the kernel that runs now (status.nodeInfo.bootID).
	BootID string
	// Deleting: the object is going away, or the node is excluded; it takes no new egress IP.
	Deleting bool
	// Cordoned: it takes no egress IP and gives up what it has (egret.k8s.ovn.org/egress-cordon). CordonBoot is the
	// boot that ended with that, if the node set it itself when it was shut down.
	Cordoned   bool
	CordonBoot string
	// Unschedulable: people keep new pods away (kubectl cordon, kubectl drain). That moves no egress IP.
	Unschedulable bool
	// UplinkMAC is the hardware address that the host and its gateway router share (k8s.ovn.org/l3-gateway-config).
	UplinkMAC HardwareAddr
	// Join and Transit are the addresses that the annotations name. Only the controller reads them, to correct them:
	// others take Config.Join and Config.Transit of ID.
	Join, Transit []netip.Prefix
	// Record is what the controller has accepted as the node's own (egret.k8s.ovn.org/recorded-addresses).
	Record Record
	// AllocationProblem is what the controller said is wrong with the node's id or subnets.
	AllocationProblem string
	// Published stands for the texts of the annotations that the node's agent writes, as they are now: the agent
	// compares it with what it would write.
	Published [32]byte
	// OtherNetworks is what annotations with a key a network say of others than the default one, by annotation: it
	// stays when these are written.
	OtherNetworks map[string]string
	// Version is the object's resourceVersion, for those who write it.
	Version string
	// Problems say which annotation could not be read, and why. The readable part stands; for the rest SetNode keeps
	// the previous values.
	Problems []NodeProblem
	Unread   Unread
}

// Key is the name.
func (n *Node) Key() string { return n.Name }

// Namespace is a namespace's labels.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Terminating: it is being deleted, and nothing can be made in it.
	Terminating bool
	// OwnNetwork: its pods have another primary network than the default one, or none.
	OwnNetwork bool
	// LimitsNetworks: its EgressServices may name the routing tables in Networks alone, as people write them
	// (egret.k8s.ovn.org/egress-service-networks).
	LimitsNetworks bool
	Networks       []string
}

// Key is the name.
func (n *Namespace) Key() string { return n.Name }

// Pod is a pod, as far as its addresses and selection go.
type Pod struct {
	Namespace, Name, UID string
	Node                 string
	Labels               map[string]string
	// IPs come from k8s.ovn.org/pod-networks, which is there before the first packet; else from status.podIPs.
	IPs []netip.Addr
	// Further are the pod's interfaces into other networks than the default one, whose are IPs.
	Further []Interface
	// HostPorts are the ports of UDP and SCTP of the pod's node that lead to it.
	HostPorts []HostPort
	// ProbePorts are the TCP ports that the pod's kubelet connects to. OpenPorts are those that a pod with another
	// primary network opens to the default network. Each is sorted and has no duplicates.
	ProbePorts []uint16
	OpenPorts  []OpenPort
	// PortProblems says which of these ports were left out, and what to do.
	PortProblems []string
	HostNetwork  bool
	// Running: its containers were started, which CNI ADD came before.
	Running bool
	// Completed pods have given their addresses up; terminating ones keep theirs, and their egress IP.
	Completed bool
	// The rest decides whose an address is that several pods say they have. Confirmed: IPs are in
	// status.podIPs, so that its kubelet says them, too. Terminating: the object is going away.
	Confirmed, Terminating bool
	Created                time.Time
}

// Key is "namespace/name".
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// OpenPort is an entry of annotation k8s.ovn.org/open-default-ports.
type OpenPort struct {
	Protocol string // "tcp", "udp", "sctp", or "icmp", which has no port
	Port     uint16
}

// HostPort is a port of a node that the portmap plugin translates to a port of a pod.
type HostPort struct {
	Protocol string     // "udp" or "sctp"
	IP       netip.Addr // the node's only address with it; unspecified or invalid: all have it
	Port, To uint16
}

// Assignment says that a node should hold an egress address: one item of an EgressIP's status, or the host of an
// EgressService with one of its source addresses.
type Assignment struct {
	Node string
	IP   netip.Addr
}

// Leaving says that a former holder is to go on translating to an egress address: one item of a status.
type Leaving struct {
	Node  string
	IP    netip.Addr
	Since time.Time // in whole microseconds, as the API keeps it
	Given ref.Since // of its assignment, while it was the holder
}

// Same compares two items; the API may give a time back in another zone.
func (l Leaving) Same(o Leaving) bool {
	return l.Node == o.Node && l.IP == o.IP && l.Since.Equal(o.Since) && l.Given == o.Given
}

// Given says since when a node should hold an egress address.
type Given struct {
	Assignment
	Since ref.Since // never 0
}

// EgressIP is an EgressIP object; Problems has its unreadable parts.
type EgressIP struct {
	Name, UID  string
	Created    time.Time
	Generation int64
	// IPs are the requested addresses that are addresses, in the object's order, each once.
	IPs                []netip.Addr
	Namespaces, Pods   labels.Selector
	Nodes              NodeSelector    // which egress nodes host them
	Traffic            labels.Selector // of EgressIPTraffics; nil: pods are served to every destination
	TrafficProblem     string          // why spec.trafficSelector cannot be read; Traffic is the former one
	TrafficUnknown     bool            // it cannot be read, and no former one is known
	Placement                          // of the status
	DropWhenUnassigned bool
	// NeverOverridden: EgressServices stand by for the pods that it selects
	// (egret.k8s.ovn.org/override-by-egress-services).
	NeverOverridden bool
	// UnassignedProblem says that an annotation about these two cannot be read; then what it is about is true.
	UnassignedProblem string
	// Mark is that of its packets from networks of users; 0: it has no valid one. MarkProblem says why one is invalid.
	Mark        int
	MarkProblem string
	// Conditions are those of the status, as they stand.
	Conditions []Condition
	// Altered: the status says more than this, or the same otherwise than a controller writes it.
	Altered bool
	// Version is the object's resourceVersion, for those who write it.
	Version string
	// Problems say which address could not be read; SelectorProblem, why a selector could not: then it selects nothing.
	Problems        []string
	SelectorProblem string
}

// Key is the name.
func (e *EgressIP) Key() string { return e.Name }

// Condition is one condition of an object's status.
type Condition struct {
	Type    string
	Status  string // "True", "False" or "Unknown"
	Reason  string
	Message string
	// Generation is that of the spec it speaks of.
	Generation int64
	// Since is when Status last changed, in whole seconds; zero: now.
	Since time.Time
}

// Attachment is a pod's port on this node, read from OVS: it is there from CNI ADD to DEL.
type Attachment struct {
	Namespace, Name, UID string
	HostIface            string
	MAC                  string
	IPs                  []netip.Addr
	// Further are the pod's interfaces beside MAC and IPs, which are in the default network.
	Further []Interface
	// EgressPaused: the pod started before any holder of its egress IP was ready, and sends nothing outside until one
	// is.
	EgressPaused bool
	// Unfiltered: the pod was not under the host's leak filter when this agent started, and stays so until the cluster
	// is known.
	Unfiltered bool
}

// Key is "namespace/name".
func (a *Attachment) Key() string { return a.Namespace + "/" + a.Name }

// Interfaces are those of the pod into logical networks, the default one's first.
func (a *Attachment) Interfaces() []Interface {
	return append([]Interface{{ref.DefaultNetwork, a.MAC, a.IPs}}, a.Further...)
}

// In are the addresses that the pod has in a network.
func (a *Attachment) In(network string) []netip.Addr {
	return addressesInNetwork(network, a.Interfaces())
}

// SaidIn are the addresses that a pod says it has in a network, which nobody has judged (View.PodIPs).
func (p *Pod) SaidIn(network string) []netip.Addr {
	if network == ref.DefaultNetwork {
		return p.IPs
	}
	return addressesInNetwork(network, p.Further)
}

// Networks are the networks that a pod says it has addresses in, the default one first.
func (p *Pod) Networks() []string {
	out := []string{ref.DefaultNetwork}
	for _, i := range p.Further {
		out = append(out, i.Network)
	}
	return out
}

// Host is what was found on this very host.
type Host struct {
	// UplinkMAC is the hardware address that host and gateway router share.
	UplinkMAC string
	// Primary are the addresses of the gateway bridge that are the node's own, one a family: of what is read from a
	// host, those that the kernel prefers; in a world, the kubelet's where they are on the bridge.
	Primary []netip.Prefix
	// Uplink are all addresses of the gateway bridge, virtual ones (VRRP) and those that are going away among them.
	Uplink []netip.Prefix
	// Addrs are all global addresses of the host, but the management port's and egress IPs.
	Addrs []netip.Addr
	// LinkLocal are its IPv4 link-local addresses that the kernel does not keep to their link. Each host may have the
	// same: NodeLocal DNSCache listens at 169.254.20.10.
	LinkLocal []netip.Addr
	// Gateways are the next hops of the default routes by the gateway bridge; several of a family share what goes out.
	Gateways []netip.Addr
	MTU      int
	// Links are those beside the primary network that have global addresses, by name.
	Links []Link
	// Tables are its routing tables, by ID.
	Tables []HostTable
}

// Holding is what one node says of itself: the egress addresses that its targets hold. Its maps are by an object's key:
// an EgressIP's name, or an EgressService's namespace/name, which no EgressIP can have.
type Holding struct {
	Node, BootID string
	Holds        map[string][]netip.Addr
	// HeldSince and SteersSince are since when what Holds and Steers say was given to the node that holds it, as the
	// object's status said when this node did it. Entries that do not say it are not in them: see SayHeld, SaySteers.
	HeldSince, SteersSince map[Of]ref.Since
	// HeldUID has the short UIDs of the objects that addresses are held for.
	HeldUID map[EgressAddress]string
	// Steers are the nodes that it leads its own pods' packets to, by address. Only the controller reads it.
	Steers map[string][]Assignment
	// SteersMore says that Steers is not all: a report has room for so many.
	SteersMore bool
	// Problems are what keeps it from holding what it should; under "" is what concerns all objects.
	Problems map[string]string
	// Reasons are those of Problems, where one is known.
	Reasons map[string]string
	// Faults are the node's subnets that can host no egress IP now, with the reason and what to do.
	Faults map[netip.Prefix]string
	// Conflicts are addresses that it holds and another machine says it has, in order of address.
	Conflicts map[string][]Conflict
	// Port is where its agent says whether it has followed what another has seen; 0: it is of a version that does not.
	Port uint16
}

// AnswersAt is Port; 0 of nil.
func (h *Holding) AnswersAt() uint16 {
	if h == nil {
		return 0
	}
	return h.Port
}

// Of is an assignment of an object, by its key.
type Of struct {
	Object string
	Assignment
}

// Conflict is a held address, and the hardware address that another machine names for it.
type Conflict struct {
	IP  netip.Addr
	MAC HardwareAddr
}
