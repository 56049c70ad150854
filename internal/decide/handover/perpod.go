package handover

import (
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// PerPod keeps a list for each pod that follows from who serves it, so that a change costs what it concerns. Property
// tests hold what is summed up from it to a count from nothing.
type PerPod[T comparable] struct {
	Of    func(*world.View, *world.Pod) []T // sorted, each once
	add   func(list []T, n int)             // n is 1 or -1
	Lists map[string][]T                    // by pod; only those with any
	stale map[world.Entry]struct{}
	Known bool // false: nothing was counted yet
}

// NewPerPod has looked at no pod yet.
func NewPerPod[T comparable](of func(*world.View, *world.Pod) []T, add func(list []T, n int)) PerPod[T] {
	return PerPod[T]{Of: of, add: add, Lists: map[string][]T{}, stale: map[world.Entry]struct{}{}}
}

// NoteChanged notes what changes in the world.
func (m *PerPod[T]) NoteChanged(e world.Entry) {
	if !m.Known {
		return
	}
	switch e.Kind {
	case world.KindPod, world.KindPrimaryNetwork, world.KindEgressServicesIn, world.KindEgressServicesAt,
		world.KindEgressServiceActive, world.KindSubnets:
		m.stale[e] = struct{}{}
	}
}

// Update counts again what has changed since the last call; the first time, everything.
func (m *PerPod[T]) Update(w *world.World) {
	if !m.Known {
		m.Known = true
		for p := range w.EachPod() {
			m.Put(p.Key(), m.Of(&w.View, p))
		}
	}
	nodes := map[string]struct{}{} // that come or go: these decide which addresses their pods have
	for t := range m.stale {
		switch t.Kind {
		case world.KindPod:
			m.updatePod(w, t.Key)
		case world.KindEgressServicesAt:
			m.updateAt(w, t.Key)
		case world.KindSubnets:
			nodes[t.Key] = struct{}{}
		case world.KindEgressServiceActive:
			for pod := range w.EgressPods(t.Key) {
				m.updatePod(w, pod)
			}
		default:
			for p := range w.PodsIn(t.Key) {
				m.Put(p.Key(), m.Of(&w.View, p))
			}
		}
	}
	clear(m.stale)
	m.updateOn(w, nodes)
}

// updateOn counts the pods of some nodes again, in one look at all pods.
func (m *PerPod[T]) updateOn(w *world.World, nodes map[string]struct{}) {
	if len(nodes) == 0 {
		return
	}
	for p := range w.EachPod() {
		if _, on := nodes[p.Node]; on {
			m.Put(p.Key(), m.Of(&w.View, p))
		}
	}
}

func (m *PerPod[T]) updateAt(w *world.World, endpoint string) {
	for _, pod := range w.PodsAt(endpoint) {
		m.updatePod(w, pod)
	}
}

func (m *PerPod[T]) updatePod(w *world.World, pod string) {
	if p := w.Pod(pod); p != nil {
		m.Put(pod, m.Of(&w.View, p))
		return
	}
	m.Put(pod, nil)
}

// Put replaces what a pod adds.
func (m *PerPod[T]) Put(pod string, list []T) {
	old := m.Lists[pod]
	if slices.Equal(old, list) {
		return
	}
	m.add(old, -1)
	m.add(list, 1)
	if m.Lists[pod] = list; len(list) == 0 {
		delete(m.Lists, pod)
	}
}
