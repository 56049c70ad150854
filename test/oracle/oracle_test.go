package oracle

import (
	"net/netip"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/world"
)

var (
	ipA, ipB, moved = netip.MustParseAddr("172.18.0.70"), netip.MustParseAddr("172.18.0.80"),
		netip.MustParseAddr("172.18.0.71")
	n1, n2  = netip.MustParseAddr("172.18.0.2"), netip.MustParseAddr("172.18.0.3")
	outside = netip.MustParseAddr("172.18.0.100")
	other   = netip.MustParseAddr("192.168.126.100")
)

func second(s float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second)))
}

// history is an oracle under test. Its EgressIPs select pods by the value of label "group", and n3 holds all addresses.
type history struct{ *Oracle }

func (h history) set(at float64, change func(w *world.World)) {
	h.Apply(second(at), change)
}

func (h history) egressIP(at float64, e world.EgressIP, ips ...netip.Addr) {
	e.UID, e.IPs, e.Namespaces = e.Name, ips, labels.Everything()
	e.Pods = labels.SelectorFromSet(labels.Set{"group": e.Name})
	if len(e.Items) == 0 && e.InForce[world.V4] {
		for _, ip := range ips {
			e.Items = append(e.Items, world.Assignment{Node: "n3", IP: ip})
		}
	}
	h.set(at, func(w *world.World) { w.SetEgressIP(&e) })
}

func (h history) pod(at float64, name, node, group string) {
	h.set(at, func(w *world.World) {
		w.SetPod(&world.Pod{Namespace: "ns", Name: name, UID: name, Node: node, Running: true,
			Labels: map[string]string{"group": group}})
	})
}

func (h history) judge(t *testing.T, why string, at float64, pod string, src, dst netip.Addr, right bool) {
	t.Helper()
	if said := h.Judge(Packet{At: second(at), Pod: "ns/" + pod, Src: src, Dst: dst}); (said == "") != right {
		t.Errorf("%s: judged right %v, want %v (%s)", why, said == "", right, said)
	}
}

var inForce = world.Placement{InForce: [2]bool{world.V4: true}}

// begun has pods a and b of EgressIPs a and b, and p of none, on n1.
func begun() history {
	h := history{New(&world.Config{})}
	for name, ip := range map[string]netip.Addr{"n1": n1, "n2": n2} {
		h.set(0, func(w *world.World) {
			w.SetNode(&world.Node{Name: name, UID: name, InternalIPs: []netip.Addr{ip}})
		})
	}
	h.set(0, func(w *world.World) { w.SetNamespace(&world.Namespace{Name: "ns"}) })
	h.egressIP(0, world.EgressIP{Name: "a", Placement: inForce}, ipA)
	h.egressIP(0, world.EgressIP{Name: "b", Placement: inForce}, ipB)
	for _, p := range []string{"a", "b", "p"} {
		h.pod(0, p, "n1", p)
	}
	return h
}

func TestClaims(t *testing.T) {
	h := begun()
	h.judge(t, "its EgressIP's", 10, "a", ipA, outside, true)
	h.judge(t, "another pod's EgressIP", 10, "a", ipB, outside, false)
	h.judge(t, "its node's", 10, "a", n1, outside, false)
	h.judge(t, "its node's, without EgressIP", 10, "p", n1, outside, true)
	h.judge(t, "another node's", 10, "p", n2, outside, false)
	h.judge(t, "an EgressIP's, without one", 10, "p", ipA, outside, false)
	h.judge(t, "a pod that there is not", 10, "x", n1, outside, false)
	said := h.Judge(Packet{At: second(10), Pod: "ns/a", Src: n1, Dst: outside})
	if want := "[172.18.0.70] of EgressIP/a"; said != want {
		t.Errorf("says %q, want %q", said, want)
	}
}

// TestRelabelled: a former EgressIP's address is right for the promise, unless a node that must follow cannot.
func TestRelabelled(t *testing.T) {
	h := begun()
	h.pod(100, "a", "n1", "b")
	h.judge(t, "new, before it was asked for", 98, "a", ipB, outside, false)
	h.judge(t, "new, seen late", 99.5, "a", ipB, outside, true)
	h.judge(t, "former, within the promise", 102, "a", ipA, outside, true)
	h.judge(t, "former, after the promise", 103.1, "a", ipA, outside, false)
	h.judge(t, "new", 103.1, "a", ipB, outside, true)
	h.judge(t, "its node's, within the promise", 101, "a", n1, outside, false)
	end := h.Disturb("n2", second(99))
	h.judge(t, "a node is disturbed that it does not concern", 103.1, "a", ipA, outside, false)
	end(second(110))
	end = h.Disturb("n3", second(99))
	h.judge(t, "while its holder cannot follow", 110, "a", ipA, outside, false)
	h.judge(t, "while its holder cannot follow, its node's", 110, "a", n1, outside, false)
	end(second(112))
	h.Disturb("n1", second(99))(second(120))
	h.judge(t, "when its node has followed", 122, "a", ipA, outside, true)
	h.judge(t, "a promise later", 123.1, "a", ipA, outside, false)
}

// TestBorn: a state from before a pod was born is not right for it, whoever cannot follow.
func TestBorn(t *testing.T) {
	h := begun()
	h.egressIP(100, world.EgressIP{Name: "a", Placement: inForce}, moved)
	h.Disturb("n1", second(99))(second(120))
	for born, right := range map[float64]bool{99: true, 100: false} {
		x := Packet{At: second(101), Since: second(born), Pod: "ns/a", Src: ipA, Dst: outside}
		if said := h.Judge(x); (said == "") != right {
			t.Errorf("born at %v: says %q", born, said)
		}
	}
}

// TestRespecified: while a holder cannot follow, the object's previous address is right for the pods that it still has.
// An address that two objects exchange is right for no pod of the former.
func TestRespecified(t *testing.T) {
	h := begun()
	h.egressIP(100, world.EgressIP{Name: "a", Placement: inForce}, moved)
	h.judge(t, "previous, after the promise", 103.1, "a", ipA, outside, false)
	end := h.Disturb("n3", second(99))
	h.judge(t, "while its holder cannot follow", 110, "a", ipA, outside, true)
	h.pod(120, "a", "n1", "b")
	h.judge(t, "of an object that it has left", 124, "a", ipA, outside, false)
	h.egressIP(130, world.EgressIP{Name: "b", Placement: inForce}, ipA)
	h.judge(t, "its own, which the former had", 131, "a", ipA, outside, true)
	end(second(140))
	h.judge(t, "its own's previous", 142, "a", ipB, outside, true)
	h.judge(t, "its own's previous, a promise later", 143.1, "a", ipB, outside, false)
}

// TestUndisturbedAtTheChange: a disturbance that begins after the promise, or ended before the change, excuses nothing.
func TestUndisturbedAtTheChange(t *testing.T) {
	h := begun()
	h.Disturb("n3", second(90))(second(99))
	h.pod(100, "a", "n1", "b")
	h.Disturb("n3", second(104))
	h.judge(t, "former, after the promise", 105, "a", ipA, outside, false)
}

// TestDisturbedInTurn: a node that could follow has followed, whatever happens to another afterwards.
func TestDisturbedInTurn(t *testing.T) {
	h := begun()
	h.Disturb("n1", second(99))(second(104))
	h.pod(100, "a", "n1", "b")
	h.Disturb("n3", second(105))(second(200))
	h.judge(t, "former, while the first could not follow", 106, "a", ipA, outside, true)
	h.judge(t, "former, later", 108, "a", ipA, outside, false)
	h.Disturb("n1", second(106))(second(110))
	h.judge(t, "former, while the first again could not follow", 112, "a", ipA, outside, true)
}

// TestFormerAddress: a pod with the address of a former pod has no claim to what that one had.
func TestFormerAddress(t *testing.T) {
	h := begun()
	h.set(100, func(w *world.World) { w.DelPod("ns/a") })
	h.pod(100.1, "c", "n1", "b")
	h.judge(t, "the former pod, within the promise", 101, "a", ipA, outside, true)
	h.judge(t, "the former pod, later", 104, "a", ipA, outside, false)
	h.judge(t, "the new pod as the former, at once", 100.2, "c", ipA, outside, false)
	h.judge(t, "the new pod", 100.2, "c", ipB, outside, true)
}

// TestMoved: an EgressIP has another address, then no node, then drops.
func TestMoved(t *testing.T) {
	h := begun()
	h.egressIP(100, world.EgressIP{Name: "a", Placement: inForce}, moved)
	h.judge(t, "new", 101, "a", moved, outside, true)
	h.judge(t, "former, within the promise", 101, "a", ipA, outside, true)
	h.judge(t, "former, later", 104, "a", ipA, outside, false)
	h.egressIP(200, world.EgressIP{Name: "a"}, moved)
	h.judge(t, "no node hosts it", 204, "a", n1, outside, true)
	h.judge(t, "no node hosts it, as it", 204, "a", moved, outside, false)
	h.egressIP(300, world.EgressIP{Name: "a", DropWhenUnassigned: true}, moved)
	h.judge(t, "it drops", 304, "a", n1, outside, false)
	waits := world.Placement{Items: []world.Assignment{{Node: "n3", IP: moved}}}
	h.egressIP(400, world.EgressIP{Name: "a", Placement: waits}, moved)
	h.judge(t, "not in force yet, as its node", 404, "a", n1, outside, true)
	h.judge(t, "not in force yet, as it", 404, "a", moved, outside, true)
}

// TestDestinations: an EgressIP with networks serves these, and the node's address is right for others.
func TestDestinations(t *testing.T) {
	h := begun()
	h.set(50, func(w *world.World) {
		w.SetTraffic(&world.Traffic{Name: "t", Networks: []netip.Prefix{netip.PrefixFrom(other, 24).Masked()}})
	})
	h.egressIP(50, world.EgressIP{Name: "a", Placement: inForce, Traffic: labels.Everything()}, ipA)
	h.judge(t, "to a network", 60, "a", ipA, other, true)
	h.judge(t, "to a network, as its node", 60, "a", n1, other, false)
	h.judge(t, "elsewhere, as its node", 60, "a", n1, outside, true)
	h.judge(t, "elsewhere, as the EgressIP", 60, "a", ipA, outside, false)
}

// TestServiceBefore: an EgressService in force comes before an EgressIP.
func TestServiceBefore(t *testing.T) {
	h := begun()
	h.set(50, func(w *world.World) {
		w.SetService(&world.Service{Namespace: "ns", Name: "s", LoadBalancer: true,
			LoadBalancerIPs: []netip.Addr{moved}, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.9")},
			Pods: labels.SelectorFromSet(labels.Set{"group": "a"})})
	})
	h.judge(t, "without EgressService", 51, "a", ipA, outside, true)
	service := &world.EgressService{Namespace: "ns", Name: "s", UID: "s", Host: "n3", Placement: world.Placement{
		InForce: inForce.InForce, Items: []world.Assignment{{Node: "n3", IP: moved}}}}
	h.set(60, func(w *world.World) { w.SetEgressService(service) })
	h.judge(t, "as the EgressService", 64, "a", moved, outside, true)
	h.judge(t, "as the EgressIP", 64, "a", ipA, outside, false)
	h.judge(t, "another pod", 64, "b", ipB, outside, true)
}

// TestAwayAPI: while the API was away, a node may have followed what was seen here only when it was back.
func TestAwayAPI(t *testing.T) {
	h := begun()
	h.Disturb("", second(90))(second(105))
	h.pod(104, "a", "n1", "b")
	h.judge(t, "new, before it was seen", 95, "a", ipB, outside, true)
	h.judge(t, "new, before the API was away", 89, "a", ipB, outside, false)
	h.judge(t, "former, when it is back", 107.9, "a", ipA, outside, true)
	h.judge(t, "former, later", 108.1, "a", ipA, outside, false)
	h.pod(124, "b", "n1", "a")
	h.judge(t, "new, seen late", 122, "b", ipA, outside, true)
	h.pod(126, "p", "n1", "a")
	h.judge(t, "new, seen in time", 124, "p", ipA, outside, false)
}
