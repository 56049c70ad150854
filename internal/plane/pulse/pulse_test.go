package pulse

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/flow"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/plane/ovn/ovntest"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// within is how soon a stopped process has to be known, and how soon it has to be known that it goes on.
const within = 5 * time.Second

// stopped is a process that a test stops in the middle of what a plane does with it.
type stopped struct {
	pulse    *Pulse
	plane    plane.Plane
	forget   func() // has the plane's next call ask the process
	stop, on func()
	want     *plan.State
}

func TestDatabaseStops(t *testing.T) {
	env := ovntest.StartDatabases(t)
	want := plan.New()
	want.NB.Put(planetest.Owner("test"),
		plan.RowID{Table: "Logical_Switch", Name: "s"}, plan.Row{Cols: map[string]any{}})
	nb := ovn.NewNB(env.NB, ovn.Options{Hold: -1, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(nb.Close)
	p := Start(t.Context(), "the database", Database(env.NB))
	check(t, stopped{pulse: p, plane: nb, forget: nb.Forget, stop: func() { env.Pause("nb") },
		on: func() { env.Resume("nb") }, want: want})
}

func TestVSwitchdStops(t *testing.T) {
	s := ovstest.Start(t, ovstest.Dummy)
	log := slog.New(slog.DiscardHandler)
	db, err := ovs.Connect(t.Context(), s.DB(), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.EnsureBridge(t.Context(), ovs.Bridge{Name: "br", FailMode: "secure"}); err != nil {
		t.Fatal(err)
	}
	want := plan.New()
	want.Flows.Put(planetest.Owner("test"), plan.Flow{Bridge: "br", Priority: 1, Match: "in_port=LOCAL"}, "drop")
	flows := flow.New(t.Context(), s.CommandPath("ovs-ofctl"), s.RunDir, nil, log)
	text, err := os.ReadFile(s.RunDir + "/ovs-vswitchd.pid")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	signal := func(sig syscall.Signal) func() { return func() { _ = syscall.Kill(pid, sig) } }
	p := Start(t.Context(), "ovs-vswitchd", Daemon(s.RunDir, "ovs-vswitchd"))
	check(t, stopped{pulse: p, plane: flows, forget: flows.Forget, stop: signal(syscall.SIGSTOP),
		on: signal(syscall.SIGCONT), want: want})
}

// check: the call that a process leaves unanswered ends in time, and says why; while it stands still no further one
// takes time; when it goes on, that is told, and the plane goes on without being opened anew.
func check(t *testing.T, x stopped) {
	p := x.pulse.On(x.plane)
	if err := plane.Apply(t.Context(), []plane.Plane{p}, x.want); err != nil {
		t.Fatal(err)
	}
	x.stop()
	t.Cleanup(x.on)
	x.forget()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := p.Grow(ctx, x.want)
	if took := time.Since(start); err == nil || took > within || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a call took %v: %v", took, err)
	}
	told(t, x.pulse)
	if x.pulse.Problem() == "" {
		t.Error("no problem though the process stands still")
	}
	start = time.Now()
	err = p.Grow(t.Context(), x.want)
	if took := time.Since(start); err == nil || took > 100*time.Millisecond {
		t.Errorf("a second call took %v: %v", took, err)
	}
	x.on()
	told(t, x.pulse)
	if err := plane.Apply(t.Context(), []plane.Plane{p}, x.want); err != nil || x.pulse.Problem() != "" {
		t.Errorf("the process goes on, and %v; problem %q", err, x.pulse.Problem())
	}
}

func told(t *testing.T, p *Pulse) {
	t.Helper()
	select {
	case <-p.Changed():
	case <-time.After(within):
		t.Fatal("the change was not told")
	}
}

// TestSlowAnswer: an answer that is late, and a process that is away for a moment, are no reason to tell anybody.
func TestSlowAnswer(t *testing.T) {
	calls := 0
	p := Start(t.Context(), "slow", func(context.Context) error {
		calls++
		time.Sleep(patience / 3)
		if calls%2 == 0 {
			return errNoAnswer
		}
		return nil
	})
	select {
	case <-p.Changed():
		t.Errorf("after %d questions: %v", calls, p.Err())
	case <-time.After(2 * patience):
	}
}

// waiting is a target that answers as long as its process does.
type waiting struct{ process context.Context }

func (waiting) Name() string { return "test" }

func (w waiting) Compare(ctx context.Context, _ *plan.State) ([]plane.Difference, error) {
	select {
	case <-w.process.Done():
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return []plane.Difference{{Plane: "test"}}, nil
	}
}

// TestCompareStops: what asks a stopped process how it differs ends in time, and says why.
func TestCompareStops(t *testing.T) {
	process, stop := context.WithCancel(t.Context())
	p := Start(t.Context(), "the process", func(ctx context.Context) error {
		if process.Err() != nil {
			<-ctx.Done()
		}
		return nil
	})
	c := p.Comparer(waiting{process})
	if found, err := c.Compare(t.Context(), nil); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	stop()
	for _, limit := range []time.Duration{within, 100 * time.Millisecond} {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := c.Compare(ctx, nil)
		cancel()
		if took := time.Since(start); err == nil || took > limit || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("it took %v: %v", took, err)
		}
	}
}
