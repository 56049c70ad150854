package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// Packet is what is sent.
type Packet struct {
	Src, Dst         netip.Addr
	Proto            string // "tcp", "udp", "sctp", "icmp"
	SrcPort, DstPort uint16
	Reply            bool // of a connection that came from outside
	// Unanswered: not the first of its connection, of which none was answered.
	Unanswered bool
	// Network is the one that the packet is in, whose addresses Src and Dst are; zero: the default network.
	Network plan.Names
}

func (p Packet) networkNames() plan.Names {
	if p.Network == (plan.Names{}) {
		return plan.DefaultNames()
	}
	return p.Network
}

// Kind says where a packet ended.
type Kind string

const (
	Outside Kind = "outside" // on the nodes' network, beyond any node
	ToPod   Kind = "pod"
	ToHost  Kind = "host"
	Dropped Kind = "dropped"
)

// End is one end of a packet's way.
type End struct {
	Kind Kind
	// Node is where it left the cluster, arrived or was dropped.
	Node string
	// Src is the source it had there, Dst the destination.
	Src, Dst netip.Addr
	// Why names the row that decided.
	Why   string
	Steps []string
}

// String is a sentence: "outside by n2 as 172.18.0.33".
func (e End) String() string {
	switch e.Kind {
	case Outside:
		return fmt.Sprintf("outside by %s as %s", e.Node, e.Src)
	case Dropped:
		return fmt.Sprintf("dropped at %s: %s", e.Node, e.Why)
	}
	return fmt.Sprintf("%s %s at %s as %s", e.Kind, e.Dst, e.Node, e.Src)
}

// walker is one packet under way. It is copied where the way forks.
type walker struct {
	*Cluster
	names plan.Names // of the network that the packet is in
	p     Packet
	node  string
	mark  int
	iif   string // of the host, by which it came there; "" for its own processes
	oif   string // once it is routed there
	// inport is the port of the switch by which it came there, and outport that of the router by which it leaves.
	inport, outport string
	// ctMark is the mark of its connection on the host, and translated that its source or destination there is settled.
	ctMark     int
	translated bool
	// asked and began are its destination and its source when it came to the host.
	asked netip.AddrPort
	began netip.Addr
	// On the gateway bridge: the port it came in by, its hardware addresses, whether conntrack has seen it, and
	// register 0.
	port    string
	frame   frame
	tracked bool
	reg0    int
	hops    int
	// balancer gave the packet its destination; nil if none did. forced: it asks the gateway router for a source, too.
	balancer *balancer
	forced   bool
	steps    []string
}

// maxHops is more than any way through the zones has; a longer one is a loop.
const maxHops = 32

func (w walker) addStep(format string, args ...any) walker {
	w.steps = append(w.steps[:len(w.steps):len(w.steps)], w.node+": "+fmt.Sprintf(format, args...))
	return w
}

func (w walker) endWith(k Kind, why string, args ...any) []End {
	return []End{{Kind: k, Node: w.node, Src: w.p.Src, Dst: w.p.Dst, Why: fmt.Sprintf(why, args...), Steps: w.steps}}
}

// Sentences are the ends, sorted, joined by " | ".
func Sentences(ends []End) string {
	var s []string
	for _, e := range ends {
		s = append(s, e.String())
	}
	slices.Sort(s)
	return strings.Join(slices.Compact(s), " | ")
}
