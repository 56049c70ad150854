package kube_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// hostile is what node n3 writes, whoever has its credentials. Its allocation (id, subnets, join and transit addresses)
// is the controller's to write.
type hostile struct {
	hostCIDRs, primary, gateway, chassis string // annotations
	boot, egressIP, held, problem        string // of its EgressNode; held are addresses, separated by blanks
	podNetworks, podIP                   string // of its pod
	internalIPs                          string // of its kubelet, separated by blanks
	ready                                bool
	recorded                             bool // the controller has recorded its addresses
}

// honest is what n3 writes otherwise.
func honest() hostile {
	n := compiletest.Node(3)
	host := kube.HostAnnotations(kube.HostFacts{Zone: "n3", ChassisID: "n3", Mode: world.SharedGateway,
		Bridge: "breth0", UplinkMAC: n.UplinkMAC.String(),
		Primary: n.Primary, HostCIDRs: n.CIDRs, Gateways: n.Gateways})
	return hostile{hostCIDRs: host[v1.AnnotationHostCIDRs], primary: host[v1.AnnotationNodePrimaryIfaddr],
		gateway: host[v1.AnnotationL3GatewayConfig], chassis: "n3",
		boot: n.BootID, egressIP: "e1", held: compiletest.EgressAddr(1)[0].String(), podIP: "10.244.3.15", ready: true,
		internalIPs: n.Primary[0].Addr().String() + " " + n.Primary[1].Addr().String()}
}

// FuzzHostileNode: whatever n3 writes of itself, packets of pods on n1 and n2 go the way that they go otherwise, but to
// n3's own addresses; those whose EgressIP n3 hosts leave by that address, or not at all; and nothing of it breaks the
// syntax of a target.
func FuzzHostileNode(f *testing.F) {
	for _, change := range []func(h *hostile){
		func(*hostile) {},
		func(h *hostile) { h.egressIP, h.held = "e0", "172.18.0.50 fc00:f853:ccd:e793::50" },
		func(h *hostile) { h.hostCIDRs = `["172.18.0.50/24","172.18.0.2/24","10.244.1.10/32","10.244.0.0/16"]` },
		func(h *hostile) { h.podNetworks = `{"default":{"ip_addresses":["10.244.1.10/24","10.244.2.12/24"]}}` },
		func(h *hostile) { h.podIP = "10.244.1.10" },
		func(h *hostile) { h.chassis, h.boot = "n1", "boot-n1" },
		func(h *hostile) { h.primary = `{"ipv4":"172.18.0.2/24","ipv6":"fc00:f853:ccd:e793::2/64"}` },
		func(h *hostile) { h.hostCIDRs = `["172.18.0.4/16","172.18.0.100/16","8.8.8.8/32","2001:db8::1/64"]` },
		func(h *hostile) { h.internalIPs = "172.18.0.100 8.8.8.8 2001:db8::1 10.244.1.10 172.18.0.50" },
		func(h *hostile) { h.primary, h.internalIPs = "{}", "10.244.1.10 172.18.0.100 8.8.8.8 172.18.0.50" },
		func(h *hostile) {
			h.gateway = `{"default":{"mac-address":"02:00:00:00:00:03\ncookie=0xbad,priority=65000,actions=drop","next-hops":["172.18.0.2"]}}`
		},
		func(h *hostile) { h.primary = `{"ipv4":"172.18.0.2/24","ipv6":"fc00:f853:ccd:e793::2/64"}` },
		func(h *hostile) { h.primary = `{"ipv4":"172.18.0.50/24","ipv6":"fc00:f853:ccd:e793::50/64"}` },
		func(h *hostile) { h.gateway = `{"default":{"mac-address":"02:00:00:00:00:01"}}` },
		func(h *hostile) { h.ready, h.problem = false, "Network/172.18.0.0/24: down\n" },
		func(h *hostile) { h.primary = `{"ipv4":"8.8.8.8/32","ipv6":"2001:db8::1/128"}` },
		func(h *hostile) { h.primary = `{"ipv4":"172.18.0.100/1"}` },
	} {
		for _, recorded := range []bool{true, false} {
			h := honest()
			change(&h)
			f.Add(h.hostCIDRs, h.primary, h.gateway, h.chassis, h.boot, h.egressIP, h.held, h.problem, h.podNetworks,
				h.podIP, h.internalIPs, h.ready, recorded)
		}
	}
	own := walked(f, honest())
	f.Fuzz(func(t *testing.T, hostCIDRs, primary, gateway, chassis, boot, egressIP, held, problem, podNetworks, podIP,
		internalIPs string, ready, recorded bool) {
		h := hostile{hostCIDRs, primary, gateway, chassis, boot, egressIP, held, problem, podNetworks, podIP,
			internalIPs, ready, recorded}
		for p, have := range walked(t, h) {
			if want := own[p]; have != want && !h.mayBe(p.Dst) {
				t.Errorf("%s to %s: %s\nwithout the hostile node: %s\nit says %+v", p.Src, p.Dst, have, want, h)
			}
		}
	})
}

// walked are the ends of packets of n1's and n2's pods in a cluster with such a node n3, of which others know what it
// writes. Those of pods that n3 serves are said as whether they are right.
func walked(t testing.TB, h hostile) map[trace.Packet]string {
	t.Helper()
	net := trace.Network{"n3": compile.Full(h.seenFrom("n3", honest()), all.Features())}
	for _, self := range []string{"n1", "n2"} {
		s := compile.Full(h.seenFrom(self, h), all.Features())
		for flow := range s.Flows.Rows() {
			if strings.ContainsFunc(flow.String(), unicode.IsControl) {
				t.Errorf("%s: flow %q", self, flow)
			}
		}
		for id, row := range s.SB.Rows() {
			if ip, _ := row.Cols["ip"].(string); id.Table == "Encap" &&
				ip != compiletest.Primary(int(id.Name[len(id.Name)-1]-'0')).String() && isOthers(ip) {
				t.Errorf("%s: packets for %s go to the tunnel endpoint %s of another node\nit says %+v", self, id.Name,
					ip, h)
			}
		}
		net[self] = s
	}
	out := map[trace.Packet]string{}
	walks, err := trace.Read(net)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packets() {
		out[p] = outcome(walks.Walk(p))
	}
	return out
}

// outcome is where a packet ends; of one with n3's address, only whether it is right.
func outcome(ends []trace.End) string {
	right := func(e trace.End) bool {
		return e.Kind == trace.Dropped || e.Kind == trace.Outside && e.Src == compiletest.EgressAddr(1)[0]
	}
	if !slices.ContainsFunc(ends, func(e trace.End) bool { return !right(e) }) {
		return "dropped, or by n3 as it should"
	}
	return trace.Sentences(ends)
}

// outside are hosts that are no nodes.
var outside = []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("2001:db8::1"),
	netip.MustParseAddr("172.18.0.100")}

// mayBe says whether an address may be n3's. What is recorded of it decides, and what it lists in the network of n1 and
// n2; of a node that has joined just now, also the one that it says it is known by in that family, if nobody else in
// the cluster has it.
func (h hostile) mayBe(ip netip.Addr) bool {
	if compiletest.Node(1).Primary[world.FamilyOf(ip)].Contains(ip) && slices.Contains(h.node().HostAddrs, ip) {
		return slices.Contains(outside, ip)
	}
	if h.recorded {
		return false
	}
	n, f := h.node(), world.FamilyOf(ip)
	if p, ok := f.Of(n.Primary); ok {
		return slices.Contains(outside, ip) && p.Addr() == ip
	}
	told := slices.DeleteFunc(f.OfAddrs(n.InternalIPs), func(a netip.Addr) bool {
		_, reserved := compiletest.Config(world.SharedGateway).Reserved(a)
		return reserved != ""
	})
	return slices.Contains(outside, ip) && len(told) > 0 && told[0] == ip
}

// isOthers says whether an address is n1's or n2's.
func isOthers(ip string) bool {
	return ip == compiletest.Primary(1).String() || ip == compiletest.Primary(2).String()
}

// packets are those of n1's and n2's pods to hosts outside, to n1 and n2, and to the pods that e0 serves.
func packets() []trace.Packet {
	var out []trace.Packet
	for _, from := range others() {
		to := slices.Concat(outside, []netip.Addr{compiletest.Primary(1), compiletest.Primary(2)}, others()[0].IPs,
			others()[1].IPs)
		for _, src := range from.IPs {
			for _, dst := range to {
				if src.Is4() == dst.Is4() && src != dst {
					out = append(out, trace.Packet{Src: src, Dst: dst, Proto: "tcp", SrcPort: 1234, DstPort: 80})
				}
			}
		}
	}
	return out
}

// others are the pods of n1 and n2: two that e0 serves, one that e1 does, one that none does.
func others() []*world.Pod {
	none := compiletest.Pod(4, "n1")
	none.Labels = nil
	return []*world.Pod{compiletest.Pod(0, "n1"), compiletest.Pod(2, "n2"), compiletest.Pod(1, "n1"), none}
}

// seenFrom is the world of a node to which n3 says this: e0 is held by n2 and n1, one family each, and e1 is assigned
// to n3.
func (h hostile) seenFrom(self string, said hostile) *world.World {
	w := world.New(self, compiletest.Config(world.SharedGateway))
	for _, n := range []*world.Node{said.node(), compiletest.Recorded(1), compiletest.Recorded(2)} { // n3 is the oldest
		w.SetNode(n)
	}
	w.SetHost(compiletest.Host(self))
	for _, ns := range []string{"ns0", "ns1", "ns2"} {
		w.SetNamespace(&world.Namespace{Name: ns})
	}
	e0 := compiletest.EgressIP(0, "app=web", compiletest.EgressAddr(0)...)
	e0.Items, e0.InForce = []world.Assignment{{Node: "n2", IP: e0.IPs[0]}, {Node: "n1", IP: e0.IPs[1]}},
		[2]bool{true, true}
	e1 := compiletest.EgressIP(1, "app=db", compiletest.EgressAddr(1)[0])
	e1.Items, e1.InForce = []world.Assignment{{Node: "n3", IP: e1.IPs[0]}}, [2]bool{true, false}
	w.SetEgressIP(e0)
	w.SetEgressIP(e1)
	for i, ip := range map[string]netip.Addr{"n2": e0.IPs[0], "n1": e0.IPs[1]} {
		w.SetHolding(&world.Holding{Node: i, BootID: "boot-" + i, Holds: map[string][]netip.Addr{"e0": {ip}}})
	}
	for _, p := range others() {
		w.SetPod(p)
		if p.Node == self {
			w.SetAttachment(compiletest.Attachment(p))
		}
	}
	w.SetHolding(kube.Holding(said.egressNode()))
	w.SetPod(kube.Pod(said.pod()))
	return w
}

func (h hostile) node() *world.Node { return kube.Node(h.object()) }

func (h hostile) object() *corev1.Node {
	n := compiletest.Node(3)
	status := corev1.ConditionFalse
	if h.ready {
		status = corev1.ConditionTrue
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3", Labels: n.Labels,
		Annotations: kube.AllocationAnnotations(world.Allocation{ID: n.ID, Subnets: n.Subnets, Join: n.Join,
			Transit: n.Transit})}}
	for key, text := range map[string]string{v1.AnnotationHostCIDRs: h.hostCIDRs,
		v1.AnnotationNodePrimaryIfaddr: h.primary,
		v1.AnnotationL3GatewayConfig:   h.gateway, v1.AnnotationNodeChassisID: h.chassis} {
		o.Annotations[key] = text
	}
	if h.recorded {
		o.Annotations[v1.AnnotationRecordedAddresses] = kube.RecordAnnotation(compiletest.Recorded(3).Record)
	}
	o.Status.NodeInfo.BootID = n.BootID
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	for _, ip := range strings.Fields(h.internalIPs) {
		o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return o
}

func (h hostile) egressNode() *egretv1.EgressNode {
	o := &egretv1.EgressNode{ObjectMeta: metav1.ObjectMeta{Name: "n3"},
		Status: egretv1.EgressNodeStatus{FormatVersion: egretv1.FormatVersion, BootID: h.boot}}
	for _, ip := range strings.Fields(h.held) {
		o.Status.Holding = append(o.Status.Holding, egretv1.Held{EgressIP: h.egressIP, IP: ip})
	}
	kind, rest, _ := strings.Cut(h.problem, "/")
	name, message, _ := strings.Cut(rest, ": ")
	o.Status.ObjectProblems = []egretv1.Problem{{Kind: kind, Name: name, Message: message}}
	return o
}

func (h hostile) pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns2", Name: "hostile", UID: "hostile",
			Labels:      map[string]string{"app": "db"},
			Annotations: map[string]string{v1.AnnotationPodNetworks: h.podNetworks}},
		Spec: corev1.PodSpec{NodeName: "n3"}, Status: corev1.PodStatus{PodIP: h.podIP},
	}
}
