package controller_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/world"

	v1 "github.com/egret-net/egret/api/v1"
)

const (
	moves     = "172.18.0.33"
	followers = 200 // nodes with a pod of the EgressIP that moves
)

// moving is an EgressIP with a pod on each of many nodes, all of which are led to n1.
type moving struct{ *api }

func newMoving(t *testing.T) moving {
	a, _, _, _ := oneAssigned(t, time.Millisecond, "n1", "n2")
	m := moving{a}
	a.watch <- func(w *world.World) {
		w.SetNamespace(&world.Namespace{Name: "shop"})
	}
	for i := range followers {
		name := fmt.Sprint("f", i)
		n := aNode(name, 10+i)
		n.Labels = nil
		a.putNode(n)
		p := &world.Pod{Namespace: "shop", Name: name, UID: name, Node: name, Running: true, Confirmed: true,
			IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 244, byte(i + 2), 9})}}
		a.watch <- func(w *world.World) { w.SetPod(p) }
	}
	a.hold("n1", map[string][]string{"e": {moves}})
	for i := range followers {
		m.steers(i, "n1")
	}
	eventually(t, "Ready", "True", func() string { return string(a.condition("e", "Ready").Status) })
	time.Sleep(5 * time.Second)
	return m
}

// steers has a node say to which holder it leads its pod.
func (m moving) steers(i int, to string) {
	h := &world.Holding{Node: fmt.Sprint("f", i), BootID: "boot", Holds: map[string][]netip.Addr{},
		Steers: map[string][]world.Assignment{"e": {{Node: to, IP: netip.MustParseAddr(moves)}}}}
	m.watch <- func(w *world.World) { w.SetHolding(h) }
}

// begins has the address move to n2, which holds it at once.
func (m moving) begins(t *testing.T) {
	n := aNode("n1", 2)
	n.Labels = nil
	m.putNode(n)
	eventually(t, "assignment", "n2="+moves, func() string { return m.assigned("e") })
	m.hold("n2", map[string][]string{"e": {moves}})
}

// TestMoveIsWrittenTwice: a move within a second is written when it is decided, and when all nodes have followed, with
// Ready; not with each report in between.
func TestMoveIsWrittenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(t)
		before := m.written("egressips/e")
		m.begins(t)
		for i := range followers {
			time.Sleep(4 * time.Millisecond)
			m.steers(i, "n2")
		}
		last := time.Now()
		eventually(t, "Ready", "True", func() string { return string(m.condition("e", "Ready").Status) })
		if took := time.Since(last); took > 100*time.Millisecond {
			t.Errorf("Ready came %v after the last node had followed", took)
		}
		time.Sleep(5 * time.Second)
		if n := m.written("egressips/e") - before; n != 2 {
			t.Errorf("a move was written %d times, want twice", n)
		}
		if s := m.statusOf("e"); len(s.Leaving) > 0 {
			t.Errorf("%v leave still", s.Leaving)
		}
	})
}

// TestProgressIsSaid: while a move goes on, its conditions name the nodes that are waited for after 1, 3, 7 and 11
// seconds, and what they name in the end is so, though nothing else happens.
func TestProgressIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMoving(t)
		before := m.written("egressips/e")
		m.begins(t)
		for i := range followers - 1 { // the last one does not follow
			time.Sleep(50 * time.Millisecond)
			m.steers(i, "n2")
		}
		waited := fmt.Sprintf("f%d does not lead its pods there", followers-1)
		if n := m.written("egressips/e") - before; n != 4 {
			t.Errorf("ten seconds of a move were written %d times, want 4 times", n)
		}
		time.Sleep(4100 * time.Millisecond)
		if said := m.condition("e", v1.ConditionReady).Message; !strings.HasPrefix(said, waited) {
			t.Errorf("four seconds after the last report Ready says %q, want %q", said, waited)
		}
	})
}
