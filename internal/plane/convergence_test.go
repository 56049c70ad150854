package plane_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/world"
)

// TestTargetsConverge: whatever changed, in whatever order it became known, however applies failed or stopped half way,
// whoever deleted what, and however often the agent started anew: one undisturbed pass later every target holds exactly
// what the full compile says, and another pass has nothing to do.
func TestTargetsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		defer func() { h.agent.stop() }() // the last one
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			h.step(t)
		}
		h.undisturbed(t)
		h.stillCalm(t)
	})
}

// history is one node's targets, and the agents that come and go over them.
type history struct {
	world   *world.World
	pending []func(*world.World) // changes that happened and that the agent does not know of
	memo    *compile.Memo
	targets *targets
	agent   *process
}

func newHistory(t *rapid.T) *history {
	mode := rapid.SampledFrom([]world.GatewayMode{world.SharedGateway, world.LocalGateway}).Draw(t, "gateway mode")
	h := &history{world: compiletest.Small("n1", mode), targets: newTargets()}
	h.restart()
	return h
}

func (h *history) step(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0, 1, 2:
		h.pending = append(h.pending, compiletest.Draw(t, h.world))
	case 3:
		h.take(rapid.IntRange(0, len(h.pending)).Draw(t, "which"))
	case 4:
		h.takeAll()
	case 5, 6:
		h.trouble(t)
		h.apply(t)
	case 7:
		h.targets.meddle(t)
	case 8:
		h.targets.connect(t)
	case 9:
		h.restart()
	}
}

// take takes one change in, perhaps after later ones.
func (h *history) take(i int) {
	if i >= len(h.pending) {
		return
	}
	change := h.pending[i]
	h.pending = append(h.pending[:i:i], h.pending[i+1:]...)
	change(h.world)
}

func (h *history) takeAll() {
	for len(h.pending) > 0 {
		h.take(0)
	}
}

// restart is a new process on the same targets: what it knows, it knows from listing the cluster.
func (h *history) restart() {
	if h.agent != nil {
		h.agent.stop()
	}
	h.memo = compile.NewMemo(all.Features())
	h.agent = h.targets.start()
}

// trouble is what the next apply meets.
func (h *history) trouble(t *rapid.T) {
	for _, p := range h.agent.planes {
		if rapid.IntRange(0, 3).Draw(t, p.Name()+" in trouble") == 0 {
			p.trouble = drawTrouble(t)
		}
	}
}

func (h *history) apply(t *rapid.T) {
	h.memo.Update(h.world)
	err := plane.Apply(t.Context(), h.agent.all(), h.memo.State)
	for _, p := range h.agent.planes {
		p.trouble = nil
	}
	if err == nil {
		h.agent.last = snapshot(h.memo.State)
	}
}

// undisturbed is a round without trouble that reads all targets anew.
func (h *history) undisturbed(t *rapid.T) {
	h.takeAll()
	h.memo.Update(h.world)
	for _, p := range h.agent.planes {
		p.Forget()
	}
	if err := plane.Apply(t.Context(), h.agent.all(), h.memo.State); err != nil {
		t.Fatalf("an undisturbed round failed: %v", err)
	}
	h.targets.check(t, compile.Full(h.world, all.Features()))
}

func (h *history) stillCalm(t *rapid.T) {
	before := h.targets.writes()
	if err := plane.Apply(t.Context(), h.agent.all(), h.memo.State); err != nil {
		t.Fatalf("a second undisturbed round failed: %v", err)
	}
	if n := h.targets.writes() - before; n != 0 {
		t.Fatalf("a second undisturbed round wrote %d times, and there was nothing to do", n)
	}
}
