package egressip_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

func leaving(d egressip.Decision) string {
	var s []string
	for _, l := range d.Leaving {
		s = append(s, l.Node+"="+l.IP.String())
	}
	return strings.Join(s, " ")
}

// report is what a node says of EgressIP e: that it holds an address, "" is none, and where it leads its own pods.
func report(w *world.World, name, ip string, steers ...world.Assignment) {
	h := &world.Holding{Node: name, BootID: "boot", Holds: map[string][]netip.Addr{},
		Steers: map[string][]world.Assignment{"e": steers}}
	if ip != "" {
		h.Holds["e"] = []netip.Addr{addr(ip)}
	}
	w.SetHolding(h)
}

// TestFormerHolderLeaves: it is listed until its successor holds the address and no node steers to it, or until the
// time for it is over.
func TestFormerHolderLeaves(t *testing.T) {
	const ip = "172.18.0.33"
	start := time.Unix(1000, 0)
	old, now := world.Assignment{Node: "n1", IP: addr(ip)}, world.Assignment{Node: "n2", IP: addr(ip)}
	for _, x := range []struct {
		name   string
		holder string // of the address, beside n1
		steers []world.Assignment
		after  time.Duration
		change func(w *world.World)
		want   string
	}{
		{name: "the successor does not hold it yet", after: time.Second, want: "n1=" + ip},
		{name: "a pod's node steers to the former one", holder: "n2", steers: []world.Assignment{old},
			after: time.Second, want: "n1=" + ip},
		{name: "nobody does", holder: "n2", steers: []world.Assignment{now}, after: time.Second},
		{name: "the time is over", holder: "n2", steers: []world.Assignment{old}, after: 30 * time.Second},
		{name: "almost", holder: "n2", steers: []world.Assignment{old}, after: 30*time.Second - 1, want: "n1=" + ip},
		{name: "the pod's node is dead", holder: "n2", steers: []world.Assignment{old}, after: time.Second,
			change: func(w *world.World) { w.SetUnreachable("n3", world.NodeUnreachable) }},
		{name: "the time is over, but its agent is away", holder: "n2", steers: []world.Assignment{old},
			after: time.Hour, want: "n1=" + ip,
			change: func(w *world.World) { w.SetUnreachable("n1", world.AgentAway) }},
		{name: "the same, and it holds nothing", holder: "n2", steers: []world.Assignment{old}, after: time.Hour,
			change: func(w *world.World) { w.SetUnreachable("n1", world.AgentAway); report(w, "n1", "") }},
		{name: "the former holder is dead", after: time.Second,
			change: func(w *world.World) { w.SetUnreachable("n1", world.NodeUnreachable) }},
		{name: "the former holder is gone", after: time.Second, change: func(w *world.World) { w.DelNode("n1") }},
		{name: "the spec names it no longer", after: time.Second, change: func(w *world.World) {
			e := *w.EgressIP("e")
			e.IPs = []netip.Addr{addr("172.18.0.34")}
			w.SetEgressIP(&e)
		}},
		{name: "it is another object's", after: time.Second,
			change: func(w *world.World) { w.SetEgressIP(object("older", 9, ip)) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld()
			three(w)
			w.SetEgressIP(object("e", 0, ip))
			write(w, decideAt(w, start))
			report(w, "n1", ip)
			unlabel(w, "n1")
			d := decideAt(w, start)
			if items(d["e"]) != "n2="+ip || leaving(d["e"]) != "n1="+ip ||
				!d["e"].Again.Equal(start.Add(2*time.Second)) {
				t.Fatalf("at first: %s, leaving %s, again %v", items(d["e"]), leaving(d["e"]), d["e"].Again)
			}
			write(w, d)
			if x.holder != "" {
				report(w, x.holder, ip)
			}
			report(w, "n3", "", x.steers...)
			if x.change != nil {
				x.change(w)
			}
			if have := leaving(decideAt(w, start.Add(x.after))["e"]); have != x.want {
				t.Errorf("leaving %q, want %q", have, x.want)
			}
		})
	}
}

// TestReportWithoutRoom: a node with more to say than its report has room for may still steer to a former holder. That
// is waited for, and not for ever.
func TestReportWithoutRoom(t *testing.T) {
	x := newPatient("n1", "n2", "n3")
	x.w.SetNamespace(&world.Namespace{Name: "ns"})
	x.w.SetPod(&world.Pod{Namespace: "ns", Name: "a", Node: "n3", IPs: []netip.Addr{addr("10.244.1.5")}, Running: true})
	x.after(0)
	report(x.w, "n1", "172.18.0.33")
	full := &world.Holding{Node: "n3", BootID: "boot", SteersMore: true, Problems: map[string]string{"": "no room"}}
	x.w.SetHolding(full)
	x.after(time.Second)
	unlabel(x.w, "n1")
	x.after(0)
	report(x.w, "n2", "172.18.0.33")
	if d := x.after(29 * time.Second); leaving(d) != "n1=172.18.0.33" || conditionOf(d, "Ready").Status != "False" {
		t.Errorf("after 29 s: leaving %q, %+v", leaving(d), conditionOf(d, "Ready"))
	}
	d := x.after(3 * time.Second)
	if c := conditionOf(d, "Ready"); leaving(d) != "" || c.Status != "True" ||
		!strings.HasSuffix(c.Message, "over IPv4: no room") {
		t.Errorf("after 32 s: leaving %q, %+v", leaving(d), c)
	}
}

func unlabel(w *world.World, name string) {
	n := *w.Node(name)
	n.Labels = nil
	w.SetNode(&n)
}

// TestLeavingWithoutSuccessor: what no other node can take is given up within three seconds; with the last address, at
// once.
func TestLeavingWithoutSuccessor(t *testing.T) {
	start := time.Unix(1000, 0)
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetNode(node("n2", 3, "172.18.0.3/24"))
	w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.44"))
	write(w, decideAt(w, start))
	report(w, "n1", "172.18.0.33")
	report(w, "n2", "172.18.0.44", world.Assignment{Node: "n2", IP: addr("172.18.0.44")})
	unlabel(w, "n2")
	d := decideAt(w, start)["e"]
	if leaving(d) != "n2=172.18.0.44" || !d.Again.Equal(start.Add(2*time.Second)) {
		t.Fatalf("leaving %q until %v", leaving(d), d.Again)
	}
	write(w, map[string]egressip.Decision{"e": d})
	if d = decideAt(w, start.Add(3*time.Second))["e"]; leaving(d) != "" {
		t.Errorf("after three seconds: %q", leaving(d))
	}
	write(w, map[string]egressip.Decision{"e": d})
	unlabel(w, "n1")
	if d = decideAt(w, start.Add(4*time.Second))["e"]; len(d.Items) != 0 || leaving(d) != "" || d.InForce[world.V4] {
		t.Errorf("the last address: %+v", d)
	}
}

// TestReadyWaitsForPodsNodes: Ready and, the first time, InForce are True when every node that is reached has confirmed
// that it steers its running pods.
func TestReadyWaitsForPodsNodes(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	e := object("e", 0, "172.18.0.33")
	e.Namespaces, e.Pods = labels.Everything(), labels.Everything()
	w.SetEgressIP(e)
	for i, name := range []string{"n1", "n2", "n3"} {
		w.SetPod(&world.Pod{Namespace: "ns", Name: name, Node: name, IPs: []netip.Addr{addr(fmt.Sprintf("10.244.%d.5",
			i))}, Running: name != "n3"})
	}
	settle(w)
	to := world.Assignment{Node: "n1", IP: addr("172.18.0.33")}
	report(w, "n1", "172.18.0.33", to)
	said := func(kind string) world.Condition { settle(w); return conditionOf(settle(w)["e"], kind) }
	for _, kind := range []string{"Ready", "InForce"} {
		if c := said(kind); c.Status != "False" || c.Message != "n2 does not lead its pods there over IPv4 yet" {
			t.Errorf("n2 has not confirmed: %+v", c)
		}
	}
	report(w, "n2", "", world.Assignment{Node: "n2", IP: to.IP})
	if c := said("Ready"); c.Status != "False" {
		t.Errorf("n2 leads them elsewhere: %+v", c)
	}
	w.SetUnreachable("n2", world.AgentAway)
	if c := said("Ready"); c.Status != "False" || c.Reason != "AgentAway" || !strings.Contains(c.Message, "n2") {
		t.Errorf("its agent is away: %+v", c)
	}
	w.SetUnreachable("n2", "")
	report(w, "n2", "", to)
	for _, kind := range []string{"Ready", "InForce"} {
		if c := said(kind); c.Status != "True" {
			t.Errorf("all have confirmed: %+v", c)
		}
	}
	report(w, "n2", "")
	if ready, inForce := said("Ready"), said("InForce"); ready.Status != "False" || inForce.Status != "True" {
		t.Errorf("n2 has fallen back: %+v, %+v", ready, inForce)
	}
}

// TestOldAgentsAreWaitedFor: an agent of before status.steers does not say where it leads its pods; the former holder
// is kept for a moment.
func TestOldAgentsAreWaitedFor(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	w.SetPod(&world.Pod{Namespace: "ns", Name: "p", Node: "n3", IPs: []netip.Addr{addr("10.244.3.5")}, Running: true})
	start := time.Unix(1000, 0)
	write(w, decideAt(w, start))
	hold(w, "n1", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	hold(w, "n3", nil) // old
	write(w, decideAt(w, start))
	unlabel(w, "n1")
	write(w, decideAt(w, start))
	hold(w, "n2", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	d := decideAt(w, start.Add(time.Millisecond))["e"]
	if leaving(d) == "" {
		t.Errorf("n1 is told to let go in the moment in which n2 holds the address; n3, whose pods were led to n1, " +
			"has said nothing")
	}
	if d = decideAt(w, start.Add(2*time.Second))["e"]; leaving(d) != "" {
		t.Errorf("after two seconds: %q", leaving(d))
	}
}

// TestClockSetBack: what was decided in the future is counted from now.
func TestClockSetBack(t *testing.T) {
	now := time.Unix(1000, 0)
	w := newWorld()
	three(w)
	e := object("e", 0, "172.18.0.33")
	e.Items = []world.Assignment{{Node: "n2", IP: addr("172.18.0.33")}}
	e.Leaving = []world.Leaving{{Node: "n1", IP: addr("172.18.0.33"), Since: now.Add(time.Hour)}}
	w.SetEgressIP(e)
	if d := decideAt(w, now)["e"]; len(d.Leaving) != 1 || !d.Leaving[0].Since.Equal(now) {
		t.Errorf("leaving %+v, want since %v", d.Leaving, now)
	}
}
