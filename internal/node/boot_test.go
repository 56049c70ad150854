package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/world"
)

// TestBootWithoutDatabase: while the logical network cannot be emptied, the host has its network all the same, again
// and again, and the bridge takes nothing from OVN. The next start of the agent finds all done.
func TestBootWithoutDatabase(t *testing.T) {
	var did []string
	var said strings.Builder
	broken := 3
	var tried []string
	b := boot{
		marker: filepath.Join(t.TempDir(), "run", "booted"), log: slog.New(slog.NewTextHandler(&said, nil)),
		pause: time.Millisecond,
		bringUp: func(_ context.Context, closed bool) error {
			did = append(did, map[bool]string{true: "closed", false: "open"}[closed])
			return nil
		},
		empty: func(context.Context) error {
			did = append(did, "empty")
			if broken--; broken >= 0 {
				return errors.New("no space left on device")
			}
			return nil
		},
		tell: func(_ context.Context, _, text string) error {
			if tried = append(tried, text); len(tried) == 1 {
				return errors.New("the API server does not answer")
			}
			return nil
		},
	}
	for range 2 {
		if err := b.runOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	steps := []string{"closed", "empty", "closed", "empty", "closed", "empty", "closed", "empty", "open"}
	if !slices.Equal(did, steps) {
		t.Errorf("did %v, want %v", did, steps)
	}
	// the first attempt fails, and with the second one people know
	if len(tried) != 2 || !strings.Contains(tried[1], "no space left on device") {
		t.Errorf("told people %q, want the fault, until it is told once", tried)
	}
	for _, want := range []string{"no space left on device", "whether its disk has room",
		"a damaged file may be removed"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the log says %s, want %q", said.String(), want)
		}
	}
}

// TestBootBesideSilentAPI: an API server that does not answer keeps the host's network from being tried again for some
// seconds only.
func TestBootBesideSilentAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		b := boot{
			marker: filepath.Join(t.TempDir(), "run", "booted"), log: slog.New(slog.DiscardHandler), pause: time.Second,
			bringUp: func(context.Context, bool) error { return nil },
			empty: func(context.Context) error {
				if broken {
					broken = false
					return errors.New("no space left on device")
				}
				return nil
			},
			tell: func(ctx context.Context, _, _ string) error {
				<-ctx.Done()
				return ctx.Err()
			},
		}
		begin := time.Now()
		if err := b.runOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("the boot waited %v for the API server", took)
		}
	})
}

// TestBootOnABusyMachine: while the bridge, or what it needs, does not answer in time, the agent tries again, in
// growing distances up to some seconds, and says so once to people and each time in the log. It goes on as it would
// have.
func TestBootOnABusyMachine(t *testing.T) {
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			var told []string
			b := boot{
				marker: filepath.Join(t.TempDir(), "booted"), log: slog.New(slog.NewTextHandler(&said, nil)),
				tell: func(_ context.Context, reason, text string) error {
					told = append(told, reason+": "+text)
					return nil
				},
				empty: func(context.Context) error { return nil },
			}
			if !first {
				if err := os.WriteFile(b.marker, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var tries []time.Time
			b.bringUp = func(_ context.Context, closed bool) error {
				if closed != first {
					t.Errorf("first start %v, and brought up closed: %v", first, closed)
				}
				if tries = append(tries, time.Now()); len(tries) <= 12 {
					return fmt.Errorf("list the bridge's flows: %w", context.DeadlineExceeded)
				}
				return nil
			}
			if err := b.runOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range tries[1:] {
				last := i == len(tries)-2
				if d := tries[i+1].Sub(tries[i]); d < firstRetry || d > lastRetry || last && d < lastRetry {
					t.Errorf("try %d is %v after the one before", i+1, d)
				}
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], reasonNoBridge) ||
				!strings.Contains(told[0], "list the bridge's flows") {
				t.Errorf("told people %q", told)
			}
			if n := strings.Count(said.String(), "list the bridge's flows"); len(tries) != 13 || n != 12 {
				t.Errorf("%d tries, and %d lines in the log", len(tries), n)
			}
		})
	}
}

// TestBootIsStopped: who stops the agent does not wait for the machine.
func TestBootIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		b := boot{marker: filepath.Join(t.TempDir(), "booted"), log: slog.New(slog.DiscardHandler),
			tell:    func(context.Context, string, string) error { return nil },
			bringUp: func(context.Context, bool) error { return errors.New("the uplink has no address") }}
		begin := time.Now()
		if err := b.runOnce(ctx); err == nil || !strings.Contains(err.Error(), "the uplink has no address") {
			t.Errorf("stopped with %v", err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("stopped after %v", took)
		}
	})
}

// TestBaseWithoutRules: the host's rules are late, and its bridge has its flows all the same; the boot is not done.
func TestBaseWithoutRules(t *testing.T) {
	rules, flows := &counting{Plane: ovn.NewFake()}, &counting{Plane: ovn.NewFake()}
	rules.fail.Store(1)
	for i, ok := range []bool{false, true} {
		late, err := growBase(t.Context(), plan.New(), rules, flows)
		if have := flows.grown.Load(); (late == nil) != ok || err != nil || int(have) != i+1 {
			t.Errorf("rules: %v, flows: %v, written %d times", late, err, have)
		}
	}
}

// TestShut: nothing from OVN's patch port passes a bridge that is shut, by any table, and the host's own traffic does.
func TestShut(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		w := world.New("n1", compiletest.Config(mode))
		w.SetHost(compiletest.Host("n1"))
		s := compile.Full(w, all.Features())
		before := len(s.Flows)
		shutIngress(s)
		host := 0
		for f := range s.Flows.Rows() {
			switch {
			case f.Table == 0 && !strings.Contains(f.Match, "in_port="),
				strings.Contains(f.Match, "in_port={"+plan.Patch):
				t.Errorf("%s: packets from OVN meet %s", mode, f)
			case f.Table == 0 && strings.Contains(f.Match, "in_port=LOCAL"):
				host++
			}
		}
		if host == 0 || len(s.Flows) == before {
			t.Errorf("%s: %d of %d flows are left, %d of them the host's", mode, len(s.Flows), before, host)
		}
	}
}
