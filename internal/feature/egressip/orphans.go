package egressip

import (
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Orphans keeps pods that Kubernetes does not know from the outside until they are detached. A pod that was deleted by
// force is gone from the API at once, or has a successor of its name, and its processes live on for a moment: nothing
// says any more which source is right for them.
type Orphans struct{}

func (Orphans) Name() string    { return "egressip-orphan" }
func (Orphans) Per() world.Kind { return world.KindAttachment }

// Compile pauses the egress of an attached pod that has no object of its own. An agent that starts knows of none yet:
// what a pod sent by then, it goes on to send.
func (Orphans) Compile(w *world.View, key string, out *plan.Rows) {
	a, p := w.Attachment(key), w.Pod(key)
	if a == nil || a.Unfiltered || p != nil && p.UID == a.UID {
		return
	}
	for _, i := range a.Interfaces() {
		pauseInterface(w, i.Network, i.IPs, out)
	}
}

// LeakFilter is the host's set of pods that are under the leak filter whatever they send.
func LeakFilter(f world.Family) string { return filteredPods(f) }

// IsLeakFilter says whether a set of the host's is that, or one of pods that are under it as to some destinations.
func IsLeakFilter(set string) bool {
	for _, f := range []world.Family{world.V4, world.V6} {
		isOne := strings.HasPrefix(set, "egressip/") && strings.HasSuffix(set, "/guarded."+f.String())
		if isOne || set == filteredPods(f) {
			return true
		}
	}
	return false
}
