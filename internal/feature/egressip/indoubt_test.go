package egressip_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// ready says whether Kubernetes calls nodes Ready.
func ready(w *world.World, is bool, names ...string) {
	for _, name := range names {
		n := *w.Node(name)
		n.Ready = is
		w.SetNode(&n)
	}
}

// allHold is a cluster of three egress nodes of which each holds an address of EgressIP e, and of others that are none.
func allHold(others int) *world.World {
	w := newWorld()
	three(w)
	for i := range others {
		n := node(fmt.Sprint("other", i), 5+i, fmt.Sprintf("172.18.0.%d/24", 5+i))
		n.Labels = nil
		w.SetNode(n)
	}
	w.SetEgressIP(object("e", 0, "172.18.0.31", "172.18.0.32", "172.18.0.33"))
	settle(w)
	for i, name := range []string{"n1", "n2", "n3"} {
		hold(w, name, map[string][]netip.Addr{"e": {addr(fmt.Sprint("172.18.0.3", i+1))}})
	}
	settle(w)
	return w
}

const everywhere = "n1=172.18.0.31 n2=172.18.0.32 n3=172.18.0.33"

// TestAllNotReady: where Kubernetes calls all nodes NotReady, that says nothing of them: what no other can take stays,
// and nothing moves when they are Ready again. What is wrong with one of them beside that counts as ever.
func TestAllNotReady(t *testing.T) {
	w := allHold(0)
	ready(w, false, "n1", "n2", "n3")
	for range 2 {
		d := settle(w)["e"]
		if items(d) != everywhere || !d.InForce[world.V4] || len(d.Events) > 0 {
			t.Fatalf("not Ready: %s, in force %v, %+v", items(d), d.InForce, d.Events)
		}
	}
	ready(w, true, "n1", "n2", "n3")
	if d := settle(w)["e"]; items(d) != everywhere || len(d.Events) > 0 {
		t.Fatalf("Ready: %s, %+v", items(d), d.Events)
	}
	for cause, change := range map[string]func(*world.World, *world.Node){
		// of one that is dead, Kubernetes is right
		handover.CauseNotReady: func(w *world.World, n *world.Node) {
			w.SetUnreachable(n.Name, world.NodeUnreachable)
		},
		egressip.CauseUnlabelled: func(w *world.World, n *world.Node) { n.Labels = nil; w.SetNode(n) },
		handover.CauseCordoned:   func(w *world.World, n *world.Node) { n.Cordoned = true; w.SetNode(n) },
		handover.CauseDeleting:   func(w *world.World, n *world.Node) { n.Deleting = true; w.SetNode(n) },
		handover.CauseDeleted:    func(w *world.World, n *world.Node) { w.DelNode(n.Name) },
	} {
		w := allHold(0)
		ready(w, false, "n1", "n2", "n3")
		settle(w)
		n := *w.Node("n1")
		change(w, &n)
		d := settle(w)["e"]
		if items(d) != "n2=172.18.0.32 n3=172.18.0.33" || d.Events[0].Cause != cause {
			t.Errorf("%s: %s, %+v", cause, items(d), d.Events)
		}
		w.SetNode(node("n4", 9, "172.18.0.9/24"))
		if d = settle(w)["e"]; !isAssigned(d, addr("172.18.0.31")) || !d.InForce[world.V4] {
			t.Errorf("%s, and a node that can take it: %s", cause, items(d))
		}
	}
}

// TestDeadAmongNotReady: of nodes that are all NotReady, one that is dead moves what it has to the first that is Ready
// again; what the others have stays with them.
func TestDeadAmongNotReady(t *testing.T) {
	w := newWorld()
	three(w)
	w.SetEgressIP(object("e", 0, "172.18.0.31"))
	w.SetEgressIP(object("f", 0, "172.18.0.32"))
	settle(w)
	hold(w, "n1", map[string][]netip.Addr{"e": {addr("172.18.0.31")}})
	hold(w, "n2", map[string][]netip.Addr{"f": {addr("172.18.0.32")}})
	settle(w)
	ready(w, false, "n1", "n2", "n3")
	settle(w)
	w.SetUnreachable("n1", world.NodeUnreachable)
	all := settle(w)
	if e, f := items(all["e"]), items(all["f"]); e != "" || f != "n2=172.18.0.32" {
		t.Fatalf("e %s, f %s", e, f)
	}
	ready(w, true, "n2")
	all = settle(w)
	if e, f := items(all["e"]), items(all["f"]); e != "n2=172.18.0.31" || f != "n2=172.18.0.32" {
		t.Fatalf("n2 is Ready: e %s, f %s", e, f)
	}
}

// TestNotReadyOneByOne: nodes turn NotReady, and Ready again, one after the other, and nothing moves. One that stays
// NotReady beyond that lets go, without anything else to tell of it, and so does one that turns NotReady alone.
func TestNotReadyOneByOne(t *testing.T) {
	x, now := termOf(allHold(0), false), time.Unix(1000, 0)
	again := now
	turn := func(is bool, name string) {
		t.Helper()
		x.change(func(w *world.World) { ready(w, is, name) }, now)
		var asked []time.Time
		_, asked = x.round(now)
		again = asked[0]
		if d := x.assigner.Last()["e"]; items(d) != everywhere {
			t.Fatalf("%s Ready=%v: %s", name, is, items(d))
		}
		now = now.Add(7 * time.Second)
	}
	x.round(now)
	for _, is := range []bool{false, true} {
		for _, name := range []string{"n2", "n1", "n3"} {
			turn(is, name)
		}
		now = now.Add(time.Hour)
		x.round(now)
	}
	turn(false, "n2")
	if want := now.Add(8 * time.Second); !again.Equal(want) {
		t.Fatalf("n2 is NotReady alone: asked again at %v, want %v", again, want)
	}
	x.round(again)
	if d := x.assigner.Last()["e"]; items(d) != "n1=172.18.0.31 n3=172.18.0.33" {
		t.Errorf("n2 is NotReady alone: %s", items(d))
	}
}

// TestNotReadyInDoubt: how many nodes have to be NotReady for the word of Kubernetes to be in doubt. It is not as long
// as one is alone with that, whatever nodes there are beside, and whatever else they are.
func TestNotReadyInDoubt(t *testing.T) {
	for _, x := range []struct {
		name           string
		others         int // that are no egress nodes
		notReady, dead []string
		stays          bool
	}{
		{name: "the only one of three", notReady: []string{"n1"}},
		{name: "two of three", notReady: []string{"n1", "n2"}, stays: true},
		{name: "all of three", notReady: []string{"n1", "n2", "n3"}, stays: true},
		{name: "all egress nodes of six nodes", others: 3, notReady: []string{"n1", "n2", "n3"}, stays: true},
		{name: "all egress nodes of seven nodes", others: 4, notReady: []string{"n1", "n2", "n3"}},
		{name: "one, and one that is dead", notReady: []string{"n1", "n2"}, dead: []string{"n2"}},
		{name: "one, and all others are dead", notReady: []string{"n1", "n2", "n3"}, dead: []string{"n2", "n3"},
			stays: true},
	} {
		w := allHold(x.others)
		for _, name := range x.dead {
			w.SetUnreachable(name, world.NodeUnreachable)
		}
		ready(w, false, x.notReady...)
		if d := settle(w)["e"]; isAssigned(d, addr("172.18.0.31")) != x.stays {
			t.Errorf("%s: %s", x.name, items(d))
		}
	}
}
