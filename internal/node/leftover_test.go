package node

import (
	"context"
	"errors"
	"log/slog"
	"strings"
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

// full is a plane that cannot remove anything, for good.
type full struct {
	noting
	tried atomic.Int64
}

func (f *full) Shrink(context.Context, *plan.State) error {
	f.tried.Add(1)
	return errors.New("no answer")
}

// TestNobodyWaitsForFormerConnections: while connections cannot be ended, pods start all the same, all else is
// removed, what is held is told with what is wrong, and it is tried again with growing distance.
func TestNobodyWaitsForFormerConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, rules, connections := ovn.NewFake(), &noting{name: "nft"}, &full{}
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
		l.Planes = []plane.Plane{
			plane.For(plan.InNFTRules, rules, plane.After()),
			plane.For(plan.InNB|plan.InSetElems, target, plane.After("nft")),
			plane.For(plan.InSources, connections, plane.After(), plane.Unawaited, plane.Ending),
		}
		var last atomic.Pointer[Outcome]
		l.After = func(_ context.Context, _ *world.World, o Outcome) { last.Store(&o) }
		go l.RunRounds(t.Context())
		l.Synced()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.DoAndWait(ctx, setPod(0))
		synctest.Wait() // the loop is at rest: what follows reads what it writes
		if err != nil || !hasPort(target, "ns0_p0") {
			t.Fatalf("a pod does not start: %v; port there: %v", err, hasPort(target, "ns0_p0"))
		}
		if err := l.WaitCleared(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("others are told that no connection has a former source: %v", err)
		}
		if rules.count("shrink") == 0 {
			t.Error("rules are not removed while connections cannot be ended")
		}
		r := composeReport("n1", "", Report{}, *last.Load(), true)
		if last.Load().Err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "no answer") {
			t.Errorf("the outcome is %v, and told is %v", last.Load().Err, r.Problems)
		}
		before := connections.tried.Load()
		time.Sleep(10 * lastRetry)
		synctest.Wait()
		if n := connections.tried.Load() - before; n < 8 || n > 20 {
			t.Errorf("within %v it was tried again %d times", 10*lastRetry, n)
		}
	})
}

// TestOnlyConnectionsHoldAnswersBack: other nodes that ask what this one has followed do not wait for what leads no
// packet by a former plan, as an entry of a firewall.
func TestOnlyConnectionsHoldAnswersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
		l.Planes = []plane.Plane{
			plane.For(plan.InNB|plan.InSetElems, ovn.NewFake(), plane.After()),
			plane.For(plan.InAccepts, &full{}, plane.After(), plane.Unawaited),
		}
		go l.RunRounds(t.Context())
		l.Synced()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.WaitCleared(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestPodsWaitForFormerRules: a pod may have the address of a former one, whose rules must be gone.
func TestPodsWaitForFormerRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
		l.Planes = []plane.Plane{plane.For(allTables, &full{}, plane.After())}
		go l.RunRounds(t.Context())
		l.Synced()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.DoAndWait(ctx, setPod(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it did not wait: %v", err)
		}
	})
}
