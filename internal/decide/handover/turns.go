package handover

import (
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// TogetherFor is how far apart nodes turn NotReady, or Ready, for one reason: kubelets renew their leases every 10 s,
// and Kubernetes looks at these every 5 s.
const TogetherFor = 15 * time.Second

// Turns are the nodes that turned Ready or NotReady lately, so that others may follow. How a node was when it was first
// seen is no turn. A nil one knows of none.
type Turns struct {
	ready map[string]bool
	at    map[string]time.Time // of those that turned lately
}

// NewTurns has seen no node.
func NewTurns() *Turns { return &Turns{ready: map[string]bool{}, at: map[string]time.Time{}} }

// See looks at a node, which may be gone.
func (t *Turns) See(w *world.View, node string, now time.Time) {
	n := w.Node(node)
	if n == nil {
		delete(t.ready, node)
		delete(t.at, node)
		return
	}
	if was, seen := t.ready[node]; seen && was != n.Ready {
		t.at[node] = now
	}
	t.ready[node] = n.Ready
}

// Pass forgets those that turned too long ago, and says whether there were any.
func (t *Turns) Pass(now time.Time) (any bool) {
	for node, at := range t.at {
		if at.After(now) { // the clock was set back
			at = now
			t.at[node] = at
		}
		if !now.Before(at.Add(TogetherFor)) {
			delete(t.at, node)
			any = true
		}
	}
	return any
}

// Lately says whether a node turned lately.
func (t *Turns) Lately(node string) bool {
	if t == nil {
		return false
	}
	_, is := t.at[node]
	return is
}

// Next returns when the first of them is forgotten; zero: the list is empty.
func (t *Turns) Next() (next time.Time) {
	for _, at := range t.at {
		next = decide.Earlier(next, at.Add(TogetherFor))
	}
	return next
}
