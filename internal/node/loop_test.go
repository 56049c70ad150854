package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
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
	go l.RunRounds(t.Context())
	return l, c, target
}

func setPod(i int) Change {
	p := compiletest.Pod(i, "n1")
	return func(w *world.World) {
		w.SetPod(p)
		w.SetAttachment(compiletest.Attachment(p))
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
			x := compiletest.Pod(i, "n1")
			if p := plan.DefaultNames().PodPort(x.Namespace, x.Name); !hasPort(target, p) {
				t.Fatalf("the target has no port %s", p)
			}
		}
	})
}

// TestChangesAreBounded: while a round takes long, who brings more changes waits, and none is lost.
func TestChangesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
		stuck, goOn := newStuck()
		l.Planes = []plane.Plane{stuck}
		go l.RunRounds(t.Context())
		l.Synced()
		synctest.Wait() // the first round is at it
		var made atomic.Int32
		count := func(*world.World) { made.Add(1) }
		late, cancel := context.WithCancel(t.Context())
		for i := range 4 * mostPending {
			ctx := t.Context()
			if i >= 2*mostPending {
				ctx = late
			}
			go func() { _ = l.Offer(ctx, count) }()
		}
		synctest.Wait()
		l.mu.Lock()
		pending := len(l.pending)
		l.mu.Unlock()
		if pending != mostPending {
			t.Errorf("%d changes wait for a round that hangs, want %d", pending, mostPending)
		}
		cancel()
		synctest.Wait()
		goOn()
		synctest.Wait()
		if n := made.Load(); n < 2*mostPending || n > 3*mostPending {
			t.Errorf("%d changes were made", n)
		}
	})
}

// stuck is a plane that hangs until it is told to go on.
type stuck struct {
	plane.Plane
	goOn chan struct{}
}

func newStuck() (s *stuck, goOn func()) {
	s = &stuck{ovn.NewFake(), make(chan struct{})}
	return s, func() { close(s.goOn) }
}

func (s *stuck) Grow(ctx context.Context, want *plan.State) error {
	<-s.goOn
	return s.Plane.Grow(ctx, want)
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
			t.Errorf("port there: %v, after %v; want that of the round that runs and its own", hasPort(target,
				"ns0_p0"), took)
		}
		time.Sleep(101 * portionTime)
		synctest.Wait()
		if c.portions.Load() >= 0 {
			t.Fatalf("%d portions are left, as if each had failed", c.portions.Load()+1)
		}
	})
}

// TestPassesWhenNothingChanged: what changes nothing in the plan does not cost a look at the targets; who asks for one
// gets it.
func TestPassesWhenNothingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c, _ := startLoop(t)
		l.Synced()
		if err := l.DoAndWait(t.Context(), setPod(0)); err != nil {
			t.Fatal(err)
		}
		before := c.grown.Load()
		for range 5 {
			if err := l.DoAndWait(t.Context(),
				func(w *world.World) { w.SetNode(compiletest.Node(2)) }); err != nil {
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
		go l.RunRounds(t.Context())
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

// TestOnlyConcernedPlanes: a pod's port is a matter of the Northbound alone; a round that looks at the targets looks at
// all.
func TestOnlyConcernedPlanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := ovn.NewFake()
		flows := &counting{Plane: ovn.NewFake()}
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
		l.Planes = []plane.Plane{plane.For(plan.InFlows, flows), plane.For(plan.InNB|plan.InSetElems, target)}
		go l.RunRounds(t.Context())
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
			t.Errorf("the flows were looked at %d times for a pod's port; port there: %v", now-before, hasPort(target,
				"ns1_p4"))
		}
		l.Wake()
		synctest.Wait()
		if flows.grown.Load() == before {
			t.Error("asked to, it did not look at the flows")
		}
	})
}

// noting is a plane that notes the order of its calls.
type noting struct {
	plane.Plane
	name  string
	fails error
	mu    sync.Mutex
	calls []string
}

func (n *noting) Name() string { return n.name }

func (n *noting) Grow(context.Context, *plan.State) error {
	n.note("grow")
	return n.fails
}

func (n *noting) Shrink(context.Context, *plan.State) error {
	n.note("shrink")
	return nil
}

func (n *noting) Forget() {}

func (n *noting) note(call string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call)
}

func (n *noting) count(call string) (times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.calls {
		if c == call {
			times++
		}
	}
	return times
}

// slowToForget is a plane that is busy with its target when it is to forget.
type slowToForget struct {
	noting
	began, may chan struct{}
}

func (s *slowToForget) Forget() {
	close(s.began)
	<-s.may
}

// TestForgettingHoldsNobodyUp: who brings a change does not wait for a plane that waits for a target.
func TestForgettingHoldsNobodyUp(t *testing.T) {
	p := &slowToForget{noting: noting{name: "flow"}, began: make(chan struct{}), may: make(chan struct{})}
	l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
	l.Planes = []plane.Plane{p}
	go l.RunRounds(t.Context())
	l.Reread()
	<-p.began
	brought := make(chan struct{})
	go func() {
		l.Do(func(*world.World) {})
		close(brought)
	}()
	select {
	case <-brought:
	case <-time.After(10 * time.Second):
		t.Error("a change waits for the plane")
	}
	close(p.may)
}

// TestRoundDoesNotWaitForConfirmation: while the hypervisors have not carried out what the Northbound says, the loop
// goes on, what guards packets is not taken away, and who waits for the targets waits; the confirmation, and nothing
// else, has the rest done.
func TestRoundDoesNotWaitForConfirmation(t *testing.T) {
	target := ovn.NewFake()
	flows, told := &noting{name: "flow"}, &noting{name: "announce"}
	l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
	l.Planes = []plane.Plane{flows, plane.For(plan.InNB|plan.InSetElems, target, plane.After("flow")),
		plane.For(allTables, told, plane.After("nb"), plane.Telling)}
	var outcomes []Outcome
	l.After = func(_ context.Context, _ *world.World, o Outcome) { outcomes = append(outcomes, o) }
	go l.RunRounds(t.Context())
	l.Synced()
	if err := l.DoAndWait(t.Context(), setPod(0)); err != nil {
		t.Fatal(err)
	}
	target.SetConfirmed(false)
	grown, shrunk := flows.count("grow"), flows.count("shrink")
	announced, hushed := told.count("grow"), told.count("shrink")
	waited := make(chan error, 1)
	go func() { waited <- l.DoAndWait(t.Context(), setPod(1)) }()
	soon(t, "the port", func() bool {
		return asked(t, l) && flows.count("grow") > grown && told.count("shrink") > hushed
	})
	if n := flows.count("shrink") - shrunk; n > 0 {
		t.Errorf("flows were shrunk %d times before the Northbound was confirmed", n)
	}
	if n := told.count("grow") - announced; n > 0 {
		t.Errorf("announced %d times before the Northbound was confirmed", n)
	}
	select {
	case err := <-waited:
		t.Fatalf("who waits for the targets went on before they were confirmed: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	var last Outcome
	if err := l.Ask(t.Context(), func(*world.World) { last = outcomes[len(outcomes)-1] }); err != nil ||
		last.Err != nil || !last.Unconfirmed {
		t.Errorf("%v; the outcome is %+v", err, last)
	}
	target.SetConfirmed(true)
	l.Confirmed()
	select {
	case err := <-waited:
		if err != nil || flows.count("shrink") == shrunk || told.count("grow") == announced {
			t.Errorf("%v; after the confirmation: flows %v, announcements %v", err, flows.calls, told.calls)
		}
	case <-time.After(stillWaiting / 2):
		t.Error("the confirmation was not acted on")
	}
}

// TestOthersGoOn: a target that fails keeps those back that lead packets to it, and no other.
func TestOthersGoOn(t *testing.T) {
	ports, rules := &noting{name: "ovs", fails: errors.New("does not answer")}, &noting{name: "nft"}
	flows, steers := &noting{name: "flow", fails: errors.New("does not answer")}, &noting{name: "nb"}
	l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
	l.Planes = []plane.Plane{
		plane.For(allTables, ports, plane.After()), plane.For(allTables, rules, plane.After()),
		plane.For(allTables, flows, plane.After("nft")), plane.For(allTables, steers, plane.After("nft", "flow")),
	}
	var errs []error
	l.After = func(_ context.Context, _ *world.World, o Outcome) { errs = append(errs, o.Err) }
	go l.RunRounds(t.Context())
	l.Synced()
	soon(t, "a round", func() bool { return asked(t, l) && rules.count("grow") > 0 && flows.count("grow") > 0 })
	if steers.count("grow") > 0 || rules.count("shrink") > 0 {
		t.Errorf("steered %d times to what is not there; shrunk %d times", steers.count("grow"), rules.count("shrink"))
	}
	var first error
	if err := l.Ask(t.Context(), func(*world.World) { first = errs[0] }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ovs", "flow"} {
		if err := first; err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the outcome says %v, and nothing of %s", err, name)
		}
	}
}

// asked is a question that the loop answers at once.
func asked(t *testing.T, l *Loop) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return l.Ask(ctx, func(*world.World) {}) == nil
}

func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// TestShrunk: an outcome says that nothing of former plans is left only when all of it has been removed: not where a
// target failed, nor while more is to be removed.
func TestShrunk(t *testing.T) {
	for name, x := range map[string]struct {
		fail, portions int32
		want           []bool
	}{
		"at once":         {want: []bool{true}},
		"after a failure": {fail: 2, want: []bool{false, true}},
		"in portions":     {portions: 2, want: []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &counting{Plane: ovn.NewFake()}
				c.fail.Store(x.fail)
				c.portions.Store(x.portions)
				if have := saidShrunk(t, c); !slices.Equal(have, x.want) {
					t.Errorf("shrunk: %v, want %v", have, x.want)
				}
			})
		})
	}
}

// saidShrunk is what the outcomes of a loop with one plane say, each once, until it has nothing more to do.
func saidShrunk(t *testing.T, p plane.Plane) []bool {
	l := NewLoop(compiletest.Small("n1", world.SharedGateway), all.Features(), slog.New(slog.DiscardHandler))
	l.Planes, l.Early = []plane.Plane{p}, nil
	var said []bool // of the loop alone
	l.After = func(_ context.Context, _ *world.World, o Outcome) { said = append(said, o.Shrunk) }
	go l.RunRounds(t.Context())
	l.Synced()
	if err := l.DoAndWait(t.Context(), setPod(0)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute) // who waits for the plan does not wait for what is to be removed
	var have []bool
	if err := l.Ask(t.Context(), func(*world.World) { have = slices.Compact(slices.Clone(said)) }); err != nil {
		t.Fatal(err)
	}
	return have
}
