package controller_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/world"
)

// Who stands by says so, is told of once, and no longer says so when the other has gone.
func TestOverlapIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		a.putNode(aNode("n1", 2))
		a.watch <- func(w *world.World) {
			w.SetNamespace(&world.Namespace{Name: "ns", Labels: labels.Set{}})
			w.SetPod(&world.Pod{Namespace: "ns", Name: "a"})
		}
		a.putEgressIP(anEgressIP("old", 2, "172.18.0.33"))
		a.putEgressIP(anEgressIP("young", 1, "172.18.0.34"))
		start(t, a)
		reason := func(name string) func() string {
			return func() string { return a.condition(name, v1.ConditionOverlapped).Reason }
		}
		eventually(t, "young", v1.ReasonServedByOther, reason("young"))
		eventually(t, "old", v1.ReasonNoOverlap, reason("old"))
		eventually(t, "events", "Assigned UndefinedRequest", func() string { return a.reasons("young") })
		a.deleteEgressIP("old")
		eventually(t, "young alone", v1.ReasonNoOverlap, reason("young"))
		eventually(t, "events", "Assigned UndefinedRequest", func() string { return a.reasons("young") })
	})
}

// An annotation changes no generation, and is acted on all the same.
func TestFallbackFollowsItsAnnotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
		start(t, a)
		reason := func() string { return a.condition("e", v1.ConditionFallback).Reason }
		eventually(t, "default", v1.ReasonNodeIP, reason)
		a.mu.Lock()
		o := a.eips["e"].DeepCopy()
		o.Annotations = map[string]string{v1.AnnotationWhenUnassigned: v1.WhenUnassignedDrop}
		a.showEgressIP(o)
		a.mu.Unlock()
		eventually(t, "annotated", v1.ReasonDrop, reason)
		eventually(t, "events", "FellBack NoMatchingNodeFound", func() string { return a.reasons("e") })
	})
}
