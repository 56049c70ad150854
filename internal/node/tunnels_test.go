package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/world"
)

// fakeTunnels is a database that reports tunnels.
type fakeTunnels struct {
	all     []ovs.Tunnel
	err     error
	changed chan struct{}
}

func (f *fakeTunnels) Tunnels(context.Context) ([]ovs.Tunnel, error) { return f.all, f.err }
func (f *fakeTunnels) TunnelsChanged() <-chan struct{}               { return f.changed }

// TestTunnelsReachTheWorld: what OVS reports is a fact of the world and of the holder's machine, at once or when the
// time for it has come. While the database does not answer, what it reported last stands.
func TestTunnelsReachTheWorld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		l := NewLoop(compiletest.Small("n1", world.SharedGateway), nil, slog.New(slog.DiscardHandler))
		a := &Agent{loop: l, log: l.Log, holding: newHolding("n1", l, l.Log)}
		f := &fakeTunnels{changed: make(chan struct{})}
		go l.RunRounds(ctx)
		go a.followTunnels(ctx, f)
		synctest.Wait()
		for _, step := range []struct {
			up    bool
			err   error
			after time.Duration
			want  string
		}{
			{true, nil, 0, "up false"},
			{false, nil, 0, "down true"},
			{true, errors.New("away"), time.Minute, "down true"},
			{true, nil, 999 * time.Millisecond, "down false"},
			{true, nil, time.Millisecond, "up false"},
		} {
			f.all, f.err = []ovs.Tunnel{{Node: "n2", Up: step.up, WasUp: true}}, step.err
			f.changed <- struct{}{}
			time.Sleep(step.after)
			synctest.Wait()
			var have string
			err := l.Ask(ctx, func(w *world.World) { have = fmt.Sprint(w.Tunnel("n2"), " ", a.holding.facts.Alone) })
			if err != nil || have != step.want {
				t.Errorf("%+v: have %q, %v", step, have, err)
			}
		}
		stop()
	})
}
