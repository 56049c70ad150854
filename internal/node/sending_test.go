package node

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plane/listen"
)

// TestAnnouncesInOrder: what the machine wants announced is sent in that order, one at a time, however long one takes;
// what waits already waits once. The loop is not held up.
func TestAnnouncesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		h := newHolding("n1", nil, slog.New(slog.DiscardHandler))
		h.withFakes(listen.NewFake())
		a, b, c := compiletest.EgressAddr(0)[0], compiletest.EgressAddr(1)[0], compiletest.EgressAddr(2)[0]
		var mu sync.Mutex
		var sent []netip.Addr
		h.announce = func(ip netip.Addr) {
			if ip == a { // its link hangs
				time.Sleep(time.Minute)
			}
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, ip)
		}
		go h.runHolder(ctx, nil)
		began := time.Now()
		for _, step := range [][]netip.Addr{{a}, {b}, {c, b}, {b}} {
			h.carryOut(holder.Result{Announce: step})
			synctest.Wait()
		}
		if !time.Now().Equal(began) {
			t.Error("a step waits for what it announces")
		}
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []netip.Addr{a, b, c}; !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
	})
}
