package egressip_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestStandingHolder: an address that a node still holds for another EgressIP, or an EgressService, goes to nobody
// until that node has let go of it, or is out. Who has it already keeps it.
func TestStandingHolder(t *testing.T) {
	for name, out := range map[string]func(*world.World){
		"let go":  func(w *world.World) { hold(w, "n3", nil) },
		"deleted": func(w *world.World) { w.DelNode("n3") },
		"dead": func(w *world.World) {
			w.SetUnreachable("n3", world.NodeUnreachable)
			n := node("n3", 4, "172.18.0.4/24")
			n.Ready, n.Labels = false, nil
			w.SetNode(n)
		},
		"rebooted": func(w *world.World) {
			n := node("n3", 4, "172.18.0.4/24")
			n.BootID, n.Labels = "next", nil
			w.SetNode(n)
		},
	} {
		for _, former := range []string{"former", "shop/web"} {
			w := newWorld()
			three(w)
			n := node("n3", 4, "172.18.0.4/24")
			n.Labels = nil
			w.SetNode(n)
			w.SetUnreachable("n3", world.AgentAway)
			stands := map[string][]netip.Addr{former: {addr("172.18.0.33")}}
			hold(w, "n3", stands)
			w.SetEgressIP(object("e", 0, "172.18.0.33", "172.18.0.44"))
			d := settle(w)["e"]
			if c := conditionOf(d, "Assigned"); items(d) != "n1=172.18.0.44" || !strings.Contains(c.Message,
				"172.18.0.33 is still held by node n3 for Egress") || !strings.Contains(c.Message, former) {
				t.Errorf("%s: %s, %+v", name, items(d), c)
			}
			w.SetUnreachable("n3", world.NodeUnreachable) // for a moment, and it goes on translating
			if d = settle(w)["e"]; items(d) != "n1=172.18.0.44" {
				t.Errorf("silent, and Ready: %s", items(d))
			}
			w.SetUnreachable("n3", world.AgentAway)
			out(w)
			if d = settle(w)["e"]; items(d) != "n2=172.18.0.33 n1=172.18.0.44" {
				t.Errorf("%s: %s, %s", name, items(d), conditionOf(d, egressip.ConditionAssigned).Message)
			}
			if w.Node("n3") != nil {
				w.SetNode(n)
				w.SetUnreachable("n3", "")
			}
			hold(w, "n3", stands)
			if d = settle(w)["e"]; items(d) != "n2=172.18.0.33 n1=172.18.0.44" {
				t.Errorf("%s, and it comes back: %s", name, items(d))
			}
		}
	}
}

// TestStandingNamesake: an EgressIP that is made anew under the name of one that a node still translates for is another
// one. What it has itself it keeps, whatever the clocks say.
func TestStandingNamesake(t *testing.T) {
	w := newWorld()
	three(w)
	n := node("n3", 4, "172.18.0.4/24")
	n.Labels = nil
	w.SetNode(n)
	e := object("e", 0, "172.18.0.33")
	ip := e.IPs[0]
	claim := func(node string, since time.Time) {
		h := &world.Holding{Node: node, BootID: "boot", Holds: map[string][]netip.Addr{"e": {ip}}}
		h.SayHeld("e", ip, ref.SinceTime(since))
		w.SetHolding(h)
	}
	claim("n3", e.Created.Add(-time.Minute))
	w.SetEgressIP(e)
	d := settle(w)["e"]
	if c := conditionOf(d, "Assigned"); items(d) != "" || !strings.Contains(c.Message, "still held by node n3") {
		t.Errorf("a former one is held: %q, %+v", items(d), c)
	}
	hold(w, "n3", nil)
	if d = settle(w)["e"]; len(d.Items) != 1 {
		t.Fatalf("let go: %q", items(d))
	}
	had := items(d)
	claim(d.Items[0].Node, e.Created.Add(-time.Second)) // by a clock that is slow
	if d = settle(w)["e"]; items(d) != had {
		t.Errorf("its own: %q, had %q", items(d), had)
	}
}

// TestNamesakeOfAnotherUID: the UID tells the former object, whatever the clock of the controller that gave the address
// to its holder. An object does not wait for a former holder of its own.
func TestNamesakeOfAnotherUID(t *testing.T) {
	for _, x := range []struct {
		uid   string
		ahead time.Duration
		waits bool
	}{{"former", time.Hour, true}, {"former", -time.Hour, true}, {"e", time.Hour, false}, {"e", -time.Hour, false}} {
		w := newWorld()
		three(w)
		n := node("n3", 4, "172.18.0.4/24")
		n.Labels = nil
		w.SetNode(n)
		e := object("e", 0, "172.18.0.33")
		at := world.EgressAddress{Object: "e", IP: e.IPs[0]}
		h := &world.Holding{Node: "n3", BootID: "boot", Holds: map[string][]netip.Addr{"e": e.IPs},
			HeldUID: map[world.EgressAddress]string{at: world.ShortUID(x.uid)}}
		h.SayHeld("e", at.IP, ref.SinceTime(e.Created.Add(x.ahead)))
		w.SetHolding(h)
		w.SetEgressIP(e)
		if d := settle(w)["e"]; (len(d.Items) == 0) != x.waits {
			t.Errorf("held for an object of UID %s, given %v after it was made: %q", x.uid, x.ahead, items(d))
		}
	}
}

// TestWaitsForFormerHolder: that a node has let go of an address is news for who waits for it, and for nobody else.
func TestWaitsForFormerHolder(t *testing.T) {
	x, now := newTerm(false), time.Unix(100_000, 0)
	ip := compiletest.EgressAddr(0)[0]
	says := func(holds ...netip.Addr) {
		x.change(func(w *world.World) {
			w.SetHolding(&world.Holding{Node: "n3", BootID: "boot-n3",
				Holds: map[string][]netip.Addr{"shop/former": holds}})
		}, now)
	}
	says(ip)
	x.change(func(w *world.World) { w.SetEgressIP(compiletest.EgressIP(0, "", ip)) }, now)
	x.round(now)
	if have := x.w.EgressIP("e0").Items; len(have) > 0 {
		t.Fatalf("it is still held: %v", have)
	}
	x.change(func(w *world.World) { show(w, "") }, now)
	x.round(now)
	says()
	x.round(now)
	if have := x.w.EgressIP("e0").Items; len(have) != 1 {
		t.Errorf("it is free: %v", have)
	}
}

// TestUnsaidHolder: an address of an EgressIP that is gone, whose node has not said that it holds it, is free after
// 10 s.
func TestUnsaidHolder(t *testing.T) {
	x, now := newTerm(false), time.Unix(100_000, 0)
	ip := compiletest.EgressAddr(0)[0]
	write := func(e *world.EgressIP) {
		x.change(func(w *world.World) { w.SetEgressIP(e) }, now)
	}
	write(compiletest.EgressIP(0, "", ip))
	x.round(now)
	former := x.w.EgressIP("e0").Assignee(ip)
	x.change(func(w *world.World) { show(w, "") }, now)
	write(compiletest.EgressIP(1, "", ip))
	x.change(func(w *world.World) { w.DelEgressIP("e0") }, now)
	now = now.Add(time.Hour)
	_, again := x.round(now)
	if have := x.w.EgressIP("e1"); former == "" || len(have.Items) > 0 {
		t.Fatalf("%s may hold it still: %v", former, have.Items)
	}
	now = now.Add(10 * time.Second)
	if !slices.Contains(again, now) {
		t.Errorf("to be decided again at %v", again)
	}
	if x.round(now); len(x.w.EgressIP("e1").Items) != 1 {
		t.Errorf("it is free: %+v", x.w.EgressIP("e1"))
	}
}

// TestKeptWhileItWaits: EgressIPs in force whose specs name each other's addresses now stay in force until these are
// let go of, so that their pods send nothing meanwhile, rather than with their nodes' addresses. One that was never in
// force is not.
func TestKeptWhileItWaits(t *testing.T) {
	w := newWorld()
	three(w)
	a, b := []netip.Addr{addr("172.18.0.33")}, []netip.Addr{addr("172.18.0.44")}
	spec := func(name string, ips []netip.Addr) {
		e := *w.EgressIP(name)
		e.IPs = ips
		w.SetEgressIP(&e)
	}
	w.SetEgressIP(object("one", 0, "172.18.0.33"))
	w.SetEgressIP(object("two", 0, "172.18.0.44"))
	settle(w)
	hold(w, "n1", map[string][]netip.Addr{"one": a})
	hold(w, "n2", map[string][]netip.Addr{"two": b})
	settle(w)
	spec("one", b)
	spec("two", a)
	w.SetEgressIP(object("three", 0, "172.18.0.55"))
	hold(w, "n3", map[string][]netip.Addr{"former": {addr("172.18.0.55")}})
	for range 3 {
		d := settle(w)
		for name, bound := range map[string]bool{"one": true, "two": true, "three": false} {
			c := conditionOf(d[name], egressip.ConditionFallback)
			says := strings.Contains(c.Message, "is dropped until one that is waited for is free")
			if items(d[name]) != "" || d[name].InForce[world.V4] != bound || says != bound {
				t.Errorf("%s: %q, in force %v, %s", name, items(d[name]), d[name].InForce, c.Message)
			}
		}
	}
	hold(w, "n1", nil)
	hold(w, "n2", nil)
	settle(w)
	d := settle(w)
	if one, two := d["one"], d["two"]; len(one.Items) != 1 || len(two.Items) != 1 || !one.InForce[world.V4] {
		t.Errorf("let go: %q and %q, in force %v", items(one), items(two), one.InForce)
	}
}

// TestAgentsAwayTogether: while no agent can be asked, for the controller's certificate has expired, a node that dies
// has a successor all the same, and a new EgressIP gets a node; nothing else moves. One agent that is away alone is
// given nothing.
func TestAgentsAwayTogether(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.50"))
	w.SetEgressIP(object("f", 0, "172.18.0.51"))
	last := settle(w)
	e, f := last["e"].Items[0].Node, items(last["f"])
	for _, n := range []string{"n1", "n2", "n3"} {
		w.SetUnreachable(n, world.AgentAway)
	}
	if last = settleAfter(w, last); items(last["e"]) != e+"=172.18.0.50" {
		t.Fatalf("moved: %s", items(last["e"]))
	}
	w.SetUnreachable(e, world.NodeUnreachable)
	w.SetEgressIP(object("new", 0, "172.18.0.52"))
	last = settleAfter(w, last)
	if len(last["e"].Items) != 1 || last["e"].Items[0].Node == e || len(last["new"].Items) != 1 ||
		items(last["f"]) != f {
		t.Errorf("%s has died: %q, %q, and %q where it was %q", e, items(last["e"]), items(last["new"]),
			items(last["f"]), f)
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		w.SetUnreachable(n, world.NodeUnreachable)
	}
	w.SetUnreachable("n3", world.AgentAway)
	w.SetEgressIP(object("newer", 0, "172.18.0.53"))
	if last = settleAfter(w, last); items(last["newer"]) != "" {
		t.Errorf("one agent is away alone: %q", items(last["newer"]))
	}
}

// TestSaysThatOthersServe: what an EgressIP in force says of its pods leaves out those that others serve.
func TestSaysThatOthersServe(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetNamespace(&world.Namespace{Name: "ns0"})
	p := compiletest.Pod(0, "n1")
	p.Running = true
	w.SetPod(p)
	w.SetEgressIP(object("older", 10, "172.18.0.50"))
	w.SetEgressIP(object("prod", 0, "172.18.0.51"))
	settle(w)
	for _, name := range []string{"older", "prod"} {
		e := *w.EgressIP(name)
		hold(w, e.Items[0].Node, map[string][]netip.Addr{name: e.IPs})
	}
	settle(w)
	d := settle(w)
	for name, others := range map[string]bool{"older": false, "prod": true} {
		for _, kind := range []string{egressip.ConditionInForce, egressip.ConditionReady} {
			c := conditionOf(d[name], kind)
			if strings.HasSuffix(c.Message, ", but for those that others serve: condition Overlapped says which") != others {
				t.Errorf("%s: %s %s: %s", name, kind, c.Status, c.Message)
			}
		}
	}
}
