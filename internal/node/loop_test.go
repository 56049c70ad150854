package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/world"
)

// portionTime is what a portion of a Shrink takes.
const portionTime = time.Millisecond

// counting is a plane that counts its calls and fails as often as it is told to.
type counting struct {
	plane.Plane
	fail          atomic.Int32
	portions      atomic.Int32 // as often Shrink has more to do
	grown, shrunk atomic.Int32
}

func (c *counting) Grow(ctx context.Context, want *plan.State) error {
	c.grown.Add(1)
	if c.fail.Add(-1) >= 0 {
		return errors.New("the target is away")
	}
	return c.Plane.Grow(ctx, want)
}

func (c *counting) Shrink(ctx context.Context, want *plan.State) error {
	c.shrunk.Add(1)
	if c.portions.Add(-1) >= 0 {
		time.Sleep(portionTime)
		return errors.Join(c.Plane.Shrink(ctx, want), plane.ErrUnfinished)
	}
	return c.Plane.Shrink(ctx, want)
}

func startLoop(t *testing.T) (*Loop, *counting, *ovn.Fake) {
	target := ovn.NewFake()
	c := &counting{Plane: target}
	l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
	l.Planes, l.Early = []plane.Plane{c}, nil
	go l.Run(t.Context())
	return l, c, target
}

func setPod(i int) Change {
	p := compiletest.Pod(i, "n1")
	return func(w *world.World) []world.Touch {
		return append(w.SetPod(p), w.SetAttachment(compiletest.Attachment(p))...)
	}
}

func hasPort(target *ovn.Fake, name string) bool {
	_, ok := target.Held().NB.Get(plan.RowID{Table: "Logical_Switch_Port", Name: name})
	return ok
}

// TestNothingBeforeSynced: targets keep what a former process left until the cluster is known.
func TestNothingBeforeSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c, _ := startLoop(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := l.DoAndWait(ctx, setPod(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a round went through before the cluster was known: %v", err)
		}
		if c.grown.Load()+c.shrunk.Load() != 0 {
			t.Error("a plane that is not early was touched before the cluster was known")
		}
	})
}

// TestDoAndWait: when it returns, the target holds the plan with the change.
func TestDoAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, target := startLoop(t)
		l.Synced()
		for i := range 20 {
			if err := l.DoAndWait(t.Context(), setPod(i)); err != nil {
				t.Fatal(err)
			}
			if p := compiletest.Attachment(compiletest.Pod(i, "n1")).LSP(); !hasPort(target, p) {
				t.Fatalf("the target has no port %s", p)
			}
		}
	})
}

// TestRetries: a round that fails is repeated until it goes through, and only then does who waits go on.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c, target := startLoop(t)
		c.fail.Store(3)
		l.Synced()
		if err := l.DoAndWait(t.Context(), setPod(0)); err != nil {
			t.Fatal(err)
		}
		if c.grown.Load() < 4 || !hasPort(target, "ns0_p0") {
			t.Errorf("grown %d times, port there: %v", c.grown.Load(), hasPort(target, "ns0_p0"))
		}
	})
}

// TestUnfinished: what a plane has still to remove is done soon, and nobody waits for it.
func TestUnfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c, target := startLoop(t)
		c.portions.Store(100)
		l.Synced()
		start := time.Now()
		if err := l.DoAndWait(t.Context(), setPod(0)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); !hasPort(target, "ns0_p0") || took > 2*portionTime {
			t.Errorf("port there: %v, after %v; want that of the round that runs and its own", hasPort(target, "ns0_p0"), took)
		}
		time.Sleep(101 * portionTime)
		synctest.Wait()
		if c.portions.Load() >= 0 {
			t.Fatalf("%d portions are left, as if each had failed", c.portions.Load()+1)
		}
	})
}

// TestPassesWhenNothingChanged: what changes nothing in the plan does not cost a look at the targets; who asks for one gets it.
func TestPassesWhenNothingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c, _ := startLoop(t)
		l.Synced()
		if err := l.DoAndWait(t.Context(), setPod(0)); err != nil {
			t.Fatal(err)
		}
		before := c.grown.Load()
		for range 5 {
			if err := l.DoAndWait(t.Context(), func(w *world.World) []world.Touch { return w.SetNode(compiletest.Node(2)) }); err != nil {
				t.Fatal(err)
			}
		}
		if now := c.grown.Load(); now != before {
			t.Errorf("the target was looked at %d times for news that is none", now-before)
		}
		l.Wake()
		synctest.Wait()
		if c.grown.Load() == before {
			t.Error("asked to, it did not look at the target")
		}
	})
}

// TestGrownIsToldBeforeTargetsShrink: others steer packets here as soon as this node can take them.
func TestGrownIsToldBeforeTargetsShrink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := ovn.NewFake()
		c := &counting{Plane: target}
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
		l.Planes, l.Early = []plane.Plane{c}, nil
		type calls struct{ grown, shrunk int32 }
		told := make(chan calls, 1)
		l.Grown = func(context.Context, *world.World, Outcome) {
			select {
			case told <- calls{c.grown.Load(), c.shrunk.Load()}:
			default:
			}
		}
		go l.Run(t.Context())
		l.Synced()
		select {
		case have := <-told:
			if want := (calls{grown: 1}); have != want {
				t.Errorf("told after %+v, want %+v", have, want)
			}
		case <-time.After(10 * time.Second):
			t.Error("nobody was told")
		}
	})
}

// TestOnlyConcernedPlanes: a pod's port is a matter of the Northbound alone; a round that looks at the targets looks at all.
func TestOnlyConcernedPlanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := ovn.NewFake()
		flows := &counting{Plane: ovn.NewFake()}
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
		l.Planes = []plane.Plane{plane.For(plan.InFlows, flows), plane.For(plan.InNB|plan.InSetElems, target)}
		go l.Run(t.Context())
		l.Synced()
		for i := range 3 { // the first may share its round with the first look at all
			if err := l.DoAndWait(t.Context(), setPod(i)); err != nil {
				t.Fatal(err)
			}
		}
		before := flows.grown.Load()
		if err := l.DoAndWait(t.Context(), setPod(4)); err != nil {
			t.Fatal(err)
		}
		if now := flows.grown.Load(); now != before || !hasPort(target, "ns1_p4") {
			t.Errorf("the flows were looked at %d times for a pod's port; port there: %v", now-before, hasPort(target, "ns1_p4"))
		}
		l.Wake()
		synctest.Wait()
		if flows.grown.Load() == before {
			t.Error("asked to, it did not look at the flows")
		}
	})
}
