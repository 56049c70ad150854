package controller_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/kube"
)

// slow is an API server that lets one EgressIP's status wait.
type slow struct {
	*api
	name string
	gate chan struct{}
}

func (s slow) Patch(ctx context.Context, p kube.Patch) (string, error) {
	if p.Plural == "egressips" && p.Name == s.name {
		<-s.gate
	}
	return s.api.Patch(ctx, p)
}

// What only people read does not compete with statuses that nodes wait for; at the next pulse it is posted all the
// same.
func TestEventsComeAfterStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		w := slow{a, "b", make(chan struct{})}
		c := controller.New(config(), a, w, controller.NewMetrics(), slog.New(slog.NewTextHandler(io.Discard, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		go a.run(ctx)
		go c.Run(ctx)
		c.Lead(ctx)
		time.Sleep(1500 * time.Millisecond) // between two pulses
		a.putEgressIP(anEgressIP("b", 0, "172.18.0.44"))
		synctest.Wait() // or a is done with before b comes
		a.putEgressIP(anEgressIP("a", 1, "172.18.0.33"))
		time.Sleep(100 * time.Millisecond)
		if a.assigned("a") == "" || a.reasons("a") != "" {
			t.Errorf("a is assigned to %q with events %q while b is being written", a.assigned("a"), a.reasons("a"))
		}
		time.Sleep(time.Second)
		if a.reasons("a") == "" {
			t.Error("no event after a pulse")
		}
		close(w.gate)
		synctest.Wait()
		if a.assigned("b") == "" || a.reasons("b") == "" {
			t.Errorf("b is assigned to %q with events %q", a.assigned("b"), a.reasons("b"))
		}
		cancel()
		synctest.Wait()
	})
}

// TestEventsOfWhatIsWritten: what is decided while a status is being written is told when that is written, too.
func TestEventsOfWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		a.putNode(aNode("n2", 3))
		w := slow{a, "e", make(chan struct{})}
		c := controller.New(config(), a, w, controller.NewMetrics(), slog.New(slog.NewTextHandler(io.Discard, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		go a.run(ctx)
		go c.Run(ctx)
		c.Lead(ctx)
		time.Sleep(time.Second)
		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
		time.Sleep(100 * time.Millisecond) // it is being written that e is assigned to n1
		unlabelled := aNode("n1", 2)
		unlabelled.Labels = nil
		a.putNode(unlabelled)
		time.Sleep(100 * time.Millisecond) // e is to move to n2
		w.gate <- struct{}{}
		time.Sleep(2 * time.Second)
		if a.assigned("e") != "n1=172.18.0.33" || a.reasons("e") != "Assigned" {
			t.Errorf("e is assigned to %q with events %q", a.assigned("e"), a.reasons("e"))
		}
		close(w.gate)
		time.Sleep(2 * time.Second)
		if a.assigned("e") != "n2=172.18.0.33" || a.reasons("e") != "Assigned Moved" {
			t.Errorf("e is assigned to %q with events %q", a.assigned("e"), a.reasons("e"))
		}
		cancel()
		synctest.Wait()
	})
}
