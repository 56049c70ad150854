package node

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// withFakes gives a holding nothing to do I/O with.
func (h *holding) withFakes(f *listen.Fake) {
	h.watch, h.silence = f.Watch, func() time.Duration { return 0 }
	h.ask = func(context.Context, string) (*world.EgressIP, error) { return nil, errors.New("no API server") }
	h.announce, h.probe = func(netip.Addr) {}, func(plan.Announcement) {}
	h.renew = func(context.Context) error { return nil }
}

// TestHoldingCarriesOut: a claim reaches the machine, whose question is asked; without an answer the address is no
// longer announced, until there is one. The lease is renewed by a loop that goes round, and not by one that stands
// still.
func TestHoldingCarriesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w, ip, listener := compiletest.Small("n1", world.SharedGateway), compiletest.EgressAddr(0)[0], listen.NewFake()
		e := compiletest.EgressIP(0, "", ip)
		e.Items = []world.Assignment{{Node: "n1", IP: ip}}
		w.SetEgressIP(e)
		l := NewLoop(w, all.Features(), slog.New(slog.DiscardHandler))
		h := newHolding("n1", l, l.Log)
		h.withFakes(listener)
		var away atomic.Bool
		var renewed, announced atomic.Int64
		h.ask = func(context.Context, string) (*world.EgressIP, error) {
			if away.Load() {
				return nil, errors.New("away")
			}
			return e, nil
		}
		h.renew = func(context.Context) error { renewed.Add(1); return nil }
		h.announce = func(netip.Addr) { announced.Add(1) }
		l.Decide, l.Grown = deciding(h), func(_ context.Context, _ *world.World, o Outcome) { h.takeGrown(o.State) }
		go h.runHolder(ctx, listener.Claims())
		go l.RunRounds(ctx)
		l.Synced()
		after := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		state := func() (yields bool, announces int) {
			if err := l.Ask(ctx, func(w *world.World) {
				yields, announces = w.Yielded("e0", ip) != nil, len(l.memo.State.Announcements)
			}); err != nil {
				t.Fatal(err)
			}
			return yields, announces
		}
		after(time.Second)

		listener.Say(listen.Claim{IP: ip, MAC: "02:00:00:00:00:99"})
		if after(time.Second); announced.Load() != 1 {
			t.Errorf("announced %d times against a stranger", announced.Load())
		}
		away.Store(true)
		listener.Say(listen.Claim{IP: ip, MAC: "02:00:00:00:00:02"})
		after(time.Second)
		if yields, announces := state(); !yields || announces != 0 {
			t.Error("announces on")
		}
		away.Store(false)
		after(3 * time.Second)
		if yields, announces := state(); yields || announces != 1 {
			t.Error("does not announce what the API server says is this node's")
		}
		before := renewed.Load()
		after(20 * time.Second)
		if n := renewed.Load() - before; n != 4 {
			t.Errorf("renewed %d times in 20 s", n)
		}
		block := make(chan struct{})
		l.Do(func(*world.World) { <-block })
		before = renewed.Load()
		if after(20 * time.Second); renewed.Load() != before {
			t.Error("renewed the lease though the loop stands still")
		}
		close(block)
		stop()
	})
}

// TestAskingEndsWithTheAgent: what the API server has been asked is not waited for when the agent ends.
func TestAskingEndsWithTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		h := newHolding("n1", NewLoop(compiletest.Small("n1", world.SharedGateway), nil, nil), nil)
		h.withFakes(listen.NewFake())
		asked, ended := false, false
		h.ask = func(ctx context.Context, _ string) (*world.EgressIP, error) {
			asked = true
			<-ctx.Done()
			ended = true
			return nil, ctx.Err()
		}
		go h.runHolder(ctx, nil)
		h.carryOut(holder.Result{Ask: []string{"e0"}})
		synctest.Wait()
		stop()
		if synctest.Wait(); !asked || !ended {
			t.Errorf("asked: %v, ended with the agent: %v", asked, ended)
		}
	})
}

// deciding has a holding's machine be all that decides.
func deciding(h *holding) func(*world.World, time.Time) time.Time {
	return func(w *world.World, now time.Time) time.Time { return h.stepMachine(w, now) }
}
