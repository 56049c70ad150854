package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/world"
)

// hanging is a database that does not answer before it loses its connection.
type hanging struct {
	cniserver.Attachments
	asked atomic.Int32
	lost  chan struct{}
}

func (h *hanging) PodPorts(context.Context) ([]cniserver.PodPort, error) {
	h.asked.Add(1)
	<-h.lost
	return nil, errors.New("connection lost")
}

// TestTidyIsNotBegunTwice: while the database hangs, each round finds the same completed pod and does not queue another
// release. One that failed is begun again, in a round that was asked for.
func TestTidyIsNotBegunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent("n1", compiletest.Config(world.SharedGateway), all.ServedKinds(), slog.New(slog.DiscardHandler))
		db := &hanging{lost: make(chan struct{})}
		a.cni = cniserver.New(db, a, a.log)
		w := world.New("n1", a.config)
		p := compiletest.Pod(1, "n1")
		p.Completed = true
		w.SetPod(p)
		w.SetAttachment(compiletest.Attachment(p))
		for range 5 {
			a.tidyPods(t.Context(), w)
			synctest.Wait()
		}
		if n := db.asked.Load(); n != 1 {
			t.Errorf("the database that hangs was asked %d times", n)
		}
		close(db.lost)
		<-a.loop.wake
		a.tidyPods(t.Context(), w)
		synctest.Wait()
		if n := db.asked.Load(); n != 2 {
			t.Errorf("after a failure it was asked %d times in all", n)
		}
	})
}

// TestTidyOfAnotherAttachment: what is under way for a pod's former port, or is another thing to do, keeps nothing from
// being begun.
func TestTidyOfAnotherAttachment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		hangs := make(chan struct{})
		chores := newChores(func() { t.Error("a round was asked for though nothing failed") })
		former, now := compiletest.Attachment(compiletest.Pod(1, "n1")), compiletest.Attachment(compiletest.Pod(1,
			"n1"))
		for _, c := range []attachmentChore{{former, resume}, {former, resume}, {former, release}, {now, resume}} {
			chores.beginChore(c, func() error {
				begun.Add(1)
				<-hangs
				return nil
			})
		}
		if synctest.Wait(); begun.Load() != 3 {
			t.Errorf("%d were begun, want 3", begun.Load())
		}
		close(hangs)
		if synctest.Wait(); len(chores.busy) != 0 {
			t.Errorf("%d are still noted as under way", len(chores.busy))
		}
	})
}
