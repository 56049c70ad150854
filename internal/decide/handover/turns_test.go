package handover_test

import (
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// TestTurnsAreForgotten: a node has turned lately for 15 s, be the clock set back meanwhile.
func TestTurnsAreForgotten(t *testing.T) {
	for _, back := range []time.Duration{0, time.Hour} {
		w, turns, now := compiletest.Small("", world.SharedGateway), handover.NewTurns(), time.Unix(100_000, 0)
		turns.See(&w.View, "n1", now)
		n := compiletest.Node(1)
		n.Ready = false
		w.SetNode(n)
		turns.See(&w.View, "n1", now)
		now = now.Add(-back)
		for second := range 17 {
			turns.Pass(now)
			if is := turns.Lately("n1"); is != (second < 15) {
				t.Errorf("%s back, %d s later: turned lately: %v", back, second, is)
			}
			now = now.Add(time.Second)
		}
	}
}
