package controller_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// restore has etcd be restored from a backup that had an EgressIP, and that at version: the watch never brings what was
// written since.
func (a *api) restore(e *v1.EgressIP, version int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.watch) > 0 {
		<-a.watch
	}
	a.version = version - 1
	e.ResourceVersion = a.next()
	a.eips[e.Name] = e
	shown := kube.EgressIP(e.DeepCopy())
	a.watch <- func(w *world.World) {
		a.back.Add(1)
		w.SetEgressIP(shown)
	}
}

// TestStatusIsWrittenAfterARestore: the last write of a status was undone before the world saw it. Nothing newer than
// it is to be waited for.
func TestStatusIsWrittenAfterARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Second)
		a.putNode(aNode("n1", 2))
		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
		a.fail = func(object string) error { // the watch is to be busy with n1 when e is written
			if object == "egressips/e" && a.nodes["n1"].Annotations[v1.AnnotationNodeID] == "" {
				return errors.New("n1 comes first")
			}
			return nil
		}
		start(t, a)
		eventually(t, "assignment", "n1=172.18.0.33", func() string { return a.assigned("e") })
		a.restore(anEgressIP("e", 0, "172.18.0.33"), 1)
		if have := a.assigned("e"); have != "" {
			t.Fatalf("the backup has %q", have)
		}
		eventually(t, "assignment", "n1=172.18.0.33", func() string { return a.assigned("e") })
	})
}
