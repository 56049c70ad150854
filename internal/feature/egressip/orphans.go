package egressip

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Orphans keeps pods that Kubernetes does not know from the outside until they are detached. A pod that was deleted by
// force is gone from the API at once, or has a successor of its name, and its processes live on for a moment: nothing
// says any more which source is right for them.
type Orphans struct{}

func (Orphans) Name() string    { return "egressip-orphan" }
func (Orphans) Per() world.Kind { return world.KindAttachment }

// Compile pauses the egress of an attached pod that has no object of its own. An agent that starts does not know any
// yet: a pod goes on sending as before.
func (Orphans) Compile(w *world.View, key string, out *plan.Rows) {
	a, p := w.Attachment(key), w.Pod(key)
	if a == nil || a.Unfiltered || p != nil && p.UID == a.UID {
		return
	}
	for _, i := range a.Interfaces() {
		pauseInterface(w, i.Network, i.IPs, out)
	}
}
