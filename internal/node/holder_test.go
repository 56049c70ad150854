package node

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
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
		w, ip, ear := compiletest.Small("n1", world.SharedGateway), compiletest.EgressAddr(0)[0], listen.NewFake()
		e := compiletest.EgressIP(0, "", ip)
		e.Items = []world.Assignment{{Node: "n1", IP: ip}}
		w.SetEgressIP(e)
		l := NewLoop(w, all.Features(), slog.New(slog.DiscardHandler))
		h := newHolding("n1", l, l.Log)
		h.withFakes(ear)
		answer, renewed := error(nil), 0
		h.ask = func(context.Context, string) (*world.EgressIP, error) { return e, answer }
		h.renew = func(context.Context) error { renewed++; return nil }
		announced := map[netip.Addr]int{}
		h.announce = func(ip netip.Addr) { announced[ip]++ }
		l.Decide, l.Grown = h.decide, func(_ context.Context, _ *world.World, o Outcome) { h.grown(o.State) }
		go h.run(ctx, ear.Claims())
		go l.Run(ctx)
		l.Synced()
		after := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		after(time.Second)

		ear.Say(listen.Claim{IP: ip, MAC: "02:00:00:00:00:99"})
		if after(time.Second); announced[ip] != 1 {
			t.Errorf("announced %v against a stranger", announced)
		}
		answer = errors.New("away")
		ear.Say(listen.Claim{IP: ip, MAC: "02:00:00:00:00:02"})
		if after(time.Second); w.Yielded("e0", ip) == nil || len(l.memo.State.Announcements) != 0 {
			t.Error("announces on")
		}
		answer = nil
		if after(3 * time.Second); w.Yielded("e0", ip) != nil || len(l.memo.State.Announcements) != 1 {
			t.Error("does not announce what the API server says is this node's")
		}
		before := renewed
		if after(20 * time.Second); renewed-before != 4 {
			t.Errorf("renewed %d times in 20 s", renewed-before)
		}
		block := make(chan struct{})
		l.Do(func(*world.World) []world.Touch { <-block; return nil })
		before = renewed
		if after(20 * time.Second); renewed != before {
			t.Error("renewed the lease though the loop stands still")
		}
		close(block)
		stop()
	})
}
