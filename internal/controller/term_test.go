package controller

import (
	"log/slog"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// queued has changes that no loop has taken in yet.
type queued struct {
	nowhere
	changes chan kube.Change
}

func (q queued) Changes() <-chan kube.Change { return q.changes }

// TestTermBeginsWithWhatWasRead: what was read before a term is in the world when it begins.
func TestTermBeginsWithWhatWasRead(t *testing.T) {
	q := queued{changes: make(chan kube.Change, 1)}
	c := New(compiletest.Config(world.SharedGateway), all.ServedKinds(), q, q, NewMetrics(),
		slog.New(slog.DiscardHandler))
	known := false
	q.changes <- func(*world.World) { known = true }
	if c.beginTerm(t.Context()); !known {
		t.Error("the term has begun, and the change is not in the world")
	}
}
