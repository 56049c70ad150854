package node

import (
	"context"
	"errors"
	"log/slog"
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
		tell: func(_ context.Context, text string) error {
			if tried = append(tried, text); len(tried) == 1 {
				return errors.New("the API server does not answer")
			}
			return nil
		},
	}
	for range 2 {
		if err := b.run(t.Context()); err != nil {
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
			tell: func(ctx context.Context, _ string) error {
				<-ctx.Done()
				return ctx.Err()
			},
		}
		begin := time.Now()
		if err := b.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("the boot waited %v for the API server", took)
		}
	})
}

// TestShut: nothing from OVN's patch port passes a bridge that is shut, by any table, and the host's own traffic does.
func TestShut(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		w := world.New("n1", compiletest.Config(mode))
		w.SetHost(compiletest.Host("n1"))
		s := compile.Full(w, all.Features())
		before := len(s.Flows)
		shut(s)
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
