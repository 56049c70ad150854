package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// startPlainAgent is an agent that knows one pod, and neither targets nor an API server.
func startPlainAgent(t *testing.T) *Agent {
	config := compiletest.Config(world.SharedGateway)
	a := newAgent("n1", config, all.ServedKinds(), slog.New(slog.DiscardHandler))
	a.holding.withFakes(listen.NewFake())
	a.loop.Do(func(w *world.World) {
		w.SetPod(&world.Pod{Namespace: "shop", Name: "p", UID: "u", Node: "n1"})
	})
	a.loop.Synced()
	go a.loop.RunRounds(t.Context())
	return a
}

// TestUntilEndsInTheMiddleOfARound: who waited has gone on with the answer of the round before, and nothing changes it
// any more.
func TestUntilEndsInTheMiddleOfARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startPlainAgent(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		leave := make(chan struct{})
		rounds := 0
		answer, err := askUntilFinal(ctx, a.watchers, func(*world.World) (int, bool) {
			if rounds++; rounds == 2 {
				<-leave
			}
			a.loop.Wake()
			return rounds, rounds == 2
		})
		if answer != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("answer %d, error %v; want that of the first round, and that time is up", answer, err)
		}
		close(leave)
		synctest.Wait()
		if answer != 1 {
			t.Errorf("answer %d after the end", answer)
		}
	})
}

// TestUntilAnswers: a final answer ends the wait at once.
func TestUntilAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startPlainAgent(t)
		start := time.Now()
		uid, err := askUntilFinal(t.Context(), a.watchers, func(w *world.World) (string, bool) {
			return w.Pod("shop/p").UID, true
		})
		if uid != "u" || err != nil || time.Since(start) != 0 {
			t.Errorf("answer %q, error %v after %v", uid, err, time.Since(start))
		}
	})
}
