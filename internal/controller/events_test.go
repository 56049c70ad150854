package controller_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
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

// What only people read does not compete with what nodes wait for: neither with statuses nor, once these are written,
// for the API server and processors with nodes that act on them. It is posted at the next pulse.
func TestEventsComeAtPulses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		start(t, a)
		time.Sleep(1500 * time.Millisecond) // between two pulses
		a.putEgressIP(anEgressIP("e", 1, "172.18.0.33"))
		time.Sleep(400 * time.Millisecond)
		if a.assigned("e") == "" || a.reasons("e") != "" {
			t.Errorf("between pulses it is assigned to %q with events %q", a.assigned("e"), a.reasons("e"))
		}
		time.Sleep(200 * time.Millisecond)
		if a.reasons("e") != "Assigned" {
			t.Errorf("after a pulse it has events %q", a.reasons("e"))
		}
	})
}

// TestLastEvents: a controller that ends between two pulses tells what it has decided, and does not wait for an API
// server that does not answer.
func TestLastEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answers := range []bool{true, false} {
			a := newAPI(0)
			a.putNode(aNode("n1", 2))
			w := mute{a, answers}
			c := controller.New(config(), all.ServedKinds(), a, w, controller.NewMetrics(),
				slog.New(slog.DiscardHandler))
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go a.run(ctx)
			go func() { c.Run(ctx); close(ended) }()
			c.Lead(ctx)
			time.Sleep(1500 * time.Millisecond)
			a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
			time.Sleep(100 * time.Millisecond)
			begin := time.Now()
			stop()
			<-ended
			if told := a.reasons("e"); answers != (told == "Assigned") || time.Since(begin) > 3*time.Second {
				t.Errorf("an API server that answers (%v): events %q, after %s", answers, told, time.Since(begin))
			}
			time.Sleep(time.Minute) // what was under way gives up
		}
	})
}

// mute is an API server that may not answer to Events.
type mute struct {
	*api
	answers bool
}

func (m mute) PostEvent(ctx context.Context, p kube.Posting) error {
	if m.answers {
		return m.api.PostEvent(ctx, p)
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestEventsOfWhatIsWritten: what is decided while a status is being written is told when that is written, too.
func TestEventsOfWhatIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		a.putNode(aNode("n2", 3))
		w := slow{a, "e", make(chan struct{})}
		c := controller.New(config(), all.ServedKinds(), a, w, controller.NewMetrics(),
			slog.New(slog.NewTextHandler(io.Discard, nil)))
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

// TestEventsOfWhatCannotBeWritten: while an object cannot be written, what is to be told of it does not grow with what
// is decided.
func TestEventsOfWhatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		a.putNode(aNode("n2", 3))
		w := slow{a, "e", make(chan struct{})}
		c := controller.New(config(), all.ServedKinds(), a, w, controller.NewMetrics(),
			slog.New(slog.NewTextHandler(io.Discard, nil)))
		go a.run(t.Context())
		go c.Run(t.Context())
		c.Lead(t.Context())
		time.Sleep(time.Second)
		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
		for i := range 100 {
			time.Sleep(20 * time.Millisecond) // its first address is being written
			a.putEgressIP(anEgressIP("e", 0, fmt.Sprint("172.18.0.", 40+i), "not an address "+fmt.Sprint(i)))
		}
		time.Sleep(time.Second)
		close(w.gate)
		time.Sleep(5 * time.Second)
		if n := len(strings.Fields(a.reasons("e"))); n < 60 || n > 80 {
			t.Errorf("%d events", n)
		}
	})
}

// refusing is an API server that does not take an Event so many times, for a reason.
type refusing struct {
	*api
	times atomic.Int32
	names sync.Map // of Events that it was given
	err   error
}

func (d *refusing) PostEvent(ctx context.Context, p kube.Posting) error {
	if p.Reason != egressip.EventAssigned {
		return d.api.PostEvent(ctx, p)
	}
	d.names.Store(p.Name, true)
	if d.times.Add(-1) >= 0 {
		return d.err
	}
	return d.api.PostEvent(ctx, p)
}

// TestEventsAreTriedAgain: an Event that could not be posted is, once the reason is over, under its first name; not,
// where that lasts too long, and not what the API server refuses.
func TestEventsAreTriedAgain(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
	for _, x := range []struct {
		name    string
		times   int32
		err     error
		reasons string
		left    int32
	}{
		{"a while", 5, context.DeadlineExceeded, "Assigned", -1},
		{"an overloaded server", 2, apierrors.NewTooManyRequests("later", 1), "Assigned", -1},
		{"too long", 1000, context.DeadlineExceeded, "NodeProblem", 992},
		{"refused", 1000, refused, "NodeProblem", 999},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &refusing{api: newAPI(0), err: x.err}
				w.times.Store(x.times)
				w.putNode(aNode("n1", 2))
				c := controller.New(config(), all.ServedKinds(), w.api, w, controller.NewMetrics(),
					slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				go w.run(ctx)
				go c.Run(ctx)
				c.Lead(ctx)
				time.Sleep(time.Second)
				w.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
				time.Sleep(10 * time.Minute)
				names := 0
				w.names.Range(func(any, any) bool { names++; return true })
				if !strings.HasPrefix(w.reasons("e"), x.reasons) || w.times.Load() != x.left || names != 1 {
					t.Errorf("Events %q, want %q; %d attempts are left, want %d; %d names", w.reasons("e"), x.reasons,
						w.times.Load(), x.left, names)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// TestEventsOfWhatTheConditionDoesNotSay: networks that others replace, as many, change no condition, and are told of.
func TestEventsOfWhatTheConditionDoesNotSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		c := controller.New(config(), all.ServedKinds(), a, a, controller.NewMetrics(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		go a.run(ctx)
		go c.Run(ctx)
		c.Lead(ctx)
		e := anEgressIP("e", 0, "172.18.0.33")
		e.Spec.TrafficSelector = &metav1.LabelSelector{}
		a.putEgressIP(e)
		for _, network := range []v1.CIDR{"10.20.0.0/16", "10.21.0.0/16", "10.22.0.0/16"} {
			o := &v1.EgressIPTraffic{ObjectMeta: metav1.ObjectMeta{Name: "t"},
				Spec: v1.EgressIPTrafficSpec{DestinationNetworks: []v1.CIDR{network}}}
			a.watch <- func(w *world.World) { w.SetTraffic(kube.Traffic(o)) }
			time.Sleep(2 * time.Second)
		}
		if !strings.HasPrefix(a.reasons("e"), "Assigned NetworksRemoved NetworksRemoved") {
			t.Errorf("Events %q", a.reasons("e"))
		}
		cancel()
		synctest.Wait()
	})
}
