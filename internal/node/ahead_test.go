package node

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestLoopWaitsForTheHolder: a pod is led to the node that its EgressIP is given to at once. If that says nothing, the
// loop takes it back after a second though nothing else happens; when it does, the pod is led there again.
func TestLoopWaitsForTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w, p := compiletest.Small("n1", world.SharedGateway), compiletest.Pod(0, "n1")
		e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)[0])
		e.Items = []world.Assignment{{Node: "n2", IP: e.IPs[0]}}
		w.SetNamespace(&world.Namespace{Name: p.Namespace})
		w.SetPod(p)
		w.SetAttachment(compiletest.Attachment(p))
		l := NewLoop(w, all.Features(), slog.New(slog.DiscardHandler))
		h := newHolding("n1", l, l.Log)
		h.withFakes(listen.NewFake())
		l.Decide, l.Grown = deciding(h), func(_ context.Context, _ *world.World, o Outcome) { h.takeGrown(o.State) }
		go h.runHolder(ctx, nil)
		go l.RunRounds(ctx)
		l.Synced()
		steers := func(after time.Duration) (is bool) {
			time.Sleep(after)
			synctest.Wait()
			if err := l.Ask(ctx, func(*world.World) { is = len(l.memo.State.Steered) > 0 }); err != nil {
				t.Fatal(err)
			}
			return is
		}
		steers(3 * time.Second)
		l.Do(func(w *world.World) { w.SetEgressIP(e) })
		if !steers(0) || !steers(900*time.Millisecond) {
			t.Error("does not steer ahead")
		}
		if steers(200*time.Millisecond) || steers(time.Minute) {
			t.Error("steers to a node that does not say that it holds the address")
		}
		holding := &world.Holding{Node: "n2", BootID: "boot-n2", Holds: map[string][]netip.Addr{"e0": e.IPs}}
		l.Do(func(w *world.World) { w.SetHolding(holding) })
		if !steers(0) || !steers(time.Minute) {
			t.Error("does not steer to the holder")
		}
		stop()
	})
}

// TestReportsNoStepAhead: a node that steers to another which does not say yet that it holds the address does not say
// that it steers: conditions Ready and InForce wait for it.
func TestReportsNoStepAhead(t *testing.T) {
	s := plan.New()
	by := func(i int) plan.Steered {
		return plan.Steered{Egress: plan.Egress{Object: ref.Object{Kind: ref.EgressIP, Name: "e0"},
			Network: ref.DefaultNetwork, IP: compiletest.EgressAddr(i)[0]}, Node: "n2"}
	}
	s.Steered.Put(plan.Owner{}, by(0), false)
	s.Steered.Put(plan.Owner{}, by(1), true)
	if r := composeReport("n1", "", Report{}, Outcome{State: s}, true); len(r.Steers) != 1 || r.Steers[0] != by(0) {
		t.Errorf("says that it steers to %v", r.Steers)
	}
}

// TestReportsADropOnceOVNDrops: a node says that it drops what an object's pods send when the flows are in OVS and
// nothing of the object was refused; until then it says what stands.
func TestReportsADropOnceOVNDrops(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	e, p := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...), compiletest.Pod(0, "n1")
	e.DropWhenUnassigned = true
	w.SetNamespace(&world.Namespace{Name: p.Namespace})
	w.SetPod(p)
	w.SetEgressIP(e)
	s := compile.Full(w, all.Features())
	led := []plan.Steered{{Egress: plan.Egress{Object: ref.Object{Kind: ref.EgressIP, Name: "e0"},
		Network: ref.DefaultNetwork, IP: e.IPs[0]}, Node: "n2"}}
	if r := composeReport("n1", "", Report{Steers: led}, Outcome{State: s}, false); !slices.Equal(r.Steers, led) {
		t.Errorf("not in OVS yet: says %v", r.Steers)
	}
	refused := []*plane.Refused{{Owner: plan.Owner{Object: led[0].Object}, Err: errors.New("no")}}
	if r := composeReport("n1", "", Report{Steers: led}, Outcome{State: s, Refused: refused},
		true); !slices.Equal(r.Steers, led) {
		t.Errorf("refused: says %v", r.Steers)
	}
	said := composeReport("n1", "", Report{Steers: led}, Outcome{State: s}, true).holdingOf("n1", "boot").Steers
	want := []world.Assignment{{IP: netip.IPv4Unspecified()}, {IP: netip.IPv6Unspecified()}}
	if !slices.Equal(said["e0"], want) {
		t.Errorf("in OVS: says %v", said)
	}
}
