package node

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/plane/pulse"
	"github.com/egret-net/egret/internal/world"
)

// TestRestartedAgentGoesOnReporting: the first round of an agent that is started anew is not confirmed where its plan
// differs in anything from what OVN has. It goes on saying what the former process said.
func TestRestartedAgentGoesOnReporting(t *testing.T) {
	s := &lateServer{version: 5}
	a, _ := startLateAgent(t, s)
	ips := compiletest.EgressAddr(0)
	var first Report
	err := a.loop.DoAndWait(t.Context(), func(w *world.World) {
		a.last, a.known = Report{}, nil // a process that has just begun
		e := compiletest.EgressIP(0, "", ips...)
		for _, ip := range ips {
			e.Items = append(e.Items, world.Assignment{Node: "n1", IP: ip})
		}
		w.SetHolding(&world.Holding{Node: "n1", Holds: map[string][]netip.Addr{"e0": ips}}) // as the former said
		w.SetEgressIP(e)
		o := hosting()
		o.Unconfirmed = true
		a.fillMailboxes(w, w.Node("n1"), w.Host(), o)
		first = a.last
	})
	if err != nil || len(first.Holding) == 0 {
		t.Errorf("%v: a restarted holder tells that it holds %v, though OVN went on translating", err, first.Holding)
	}
}

// gate is a Northbound whose last transaction is not confirmed: ovn.Plane.Grow leaves what is new for later.
type gate struct {
	*ovn.Fake
	closed atomic.Bool
}

func (g *gate) Grow(ctx context.Context, want *plan.State) error {
	if g.closed.Load() {
		return plane.ErrUnconfirmed
	}
	return g.Fake.Grow(ctx, want)
}

// TestPodStartsWhenOVNSteers: a pod that waits for the first holder of its egress IP starts when this node's OVN leads
// it there, not when the world says so.
func TestPodStartsWhenOVNSteers(t *testing.T) {
	s := &lateServer{version: 5, labelled: true, created: true}
	a, target := startLateAgent(t, s)
	g := &gate{Fake: target}
	if err := a.loop.DoAndWait(t.Context(),
		func(w *world.World) {
			a.loop.Planes = []plane.Plane{g}
			w.DelHolding("n2")
		}); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- a.Attached(t.Context(), ofShop) }()
	time.Sleep(500 * time.Millisecond) // it waits for a holder
	g.closed.Store(true)
	a.loop.Do(func(w *world.World) {
		w.SetHolding(&world.Holding{Node: "n2", BootID: "boot-n2",
			Holds: map[string][]netip.Addr{"e": {compiletest.V4(172, 18, 0, 50)}}})
	})
	select {
	case err := <-started:
		if !isSteered(t, a, target) {
			t.Errorf("the pod starts (%v), and OVN does not know of its egress IP: it leaves with its node's address",
				err)
		}
	case <-time.After(time.Second): // it waits
	}
}

// TestPodThatWaitsIsToldForWhom: ADD ends with its time while OVN carries nothing out, and says which process does not
// answer.
func TestPodThatWaitsIsToldForWhom(t *testing.T) {
	a, target := startLateAgent(t, &lateServer{version: 5})
	g := &gate{Fake: target}
	g.closed.Store(true)
	stopped := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	northd := pulse.Start(t.Context(), "ovn-northd", stopped)
	if err := a.loop.Ask(t.Context(), func(*world.World) {
		a.loop.Planes, a.startup.pulses = []plane.Plane{g}, []*pulse.Pulse{northd}
	}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	err := a.Attached(short, ofShop)
	if err == nil || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "ovn-northd does not answer") {
		t.Errorf("ADD ends with %v", err)
	}
}
