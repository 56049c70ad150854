package controller_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
)

// A problem that stands is told once, whichever controller leads: the node itself says that it was told. It goes with
// its cause.
func TestStandingProblemIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		n := aNode("n1", 2)
		n.Annotations[v1.AnnotationHostCIDRs] = "{"
		a.putNode(n)
		go a.run(t.Context())
		lead := func() (stop func()) {
			ctx, stop := context.WithCancel(t.Context())
			c := controller.New(config(), all.ServedKinds(), a, a, controller.NewMetrics(),
				slog.New(slog.NewTextHandler(io.Discard, nil)))
			go c.Run(ctx)
			c.Lead(ctx)
			return stop
		}
		said := func() string { return strings.SplitAfter(a.annotation("n1", v1.AnnotationAllocationProblem), ":")[0] }
		stop := lead()
		eventually(t, "annotation", "annotation k8s.ovn.org/host-cidrs:", said)
		eventually(t, "events", "NodeAllocation", func() string { return a.reasons("n1") })
		stop()
		time.Sleep(20 * time.Millisecond)
		a.mu.Lock()
		again := a.nodes["n1"].DeepCopy()
		a.mu.Unlock()
		a.putNode(again) // the next one's list
		defer lead()()
		a.putNode(aNode("n2", 3))
		eventually(t, "the next leader", "3", func() string { return a.annotation("n2", v1.AnnotationNodeID) })
		if r := a.reasons("n1"); r != "NodeAllocation" {
			t.Errorf("events: %s", r)
		}
		a.mu.Lock()
		mended := a.nodes["n1"].DeepCopy()
		mended.Annotations[v1.AnnotationHostCIDRs] = `["172.18.0.2/16"]`
		a.mu.Unlock()
		a.putNode(mended)
		eventually(t, "annotation", "", said)
	})
}

// Somebody writes a condition of his own just before the term ends: the next term must not write at the version before
// that for ever.
func TestTermEndsWithWhatTouchedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, c, _, stop := oneAssigned(t, 0, "n1", "n2")
		eventually(t, "events", "Assigned", func() string { return a.reasons("e") })
		time.Sleep(1100 * time.Millisecond) // a beat has passed: the next is a second away
		a.mu.Lock()
		o := a.eips["e"].DeepCopy()
		o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: "Foreign", Status: "True", Reason: "R",
			LastTransitionTime: metav1.Unix(5, 0)})
		a.showEgressIP(o)
		a.mu.Unlock()
		for len(a.watch) > 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		stop()
		time.Sleep(20 * time.Millisecond)
		c.Lead(t.Context())
		a.deleteNode("n1")
		eventually(t, "moved", "n2=172.18.0.33", func() string { return a.assigned("e") })
	})
}
