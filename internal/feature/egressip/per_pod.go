package egressip

import (
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// perPod keeps a list for each pod that follows from who serves it, so that a change costs what it touches. Property
// tests hold what is summed up from it to a count from nothing.
type perPod[T comparable] struct {
	of    func(*world.View, *world.Pod) []T // sorted, each once
	add   func(list []T, n int)             // n is 1 or -1
	lists map[string][]T                    // by pod; only those with any
	stale map[world.Touch]struct{}
	known bool // false: nothing was counted yet
}

func newPerPod[T comparable](of func(*world.View, *world.Pod) []T, add func(list []T, n int)) perPod[T] {
	return perPod[T]{of: of, add: add, lists: map[string][]T{}, stale: map[world.Touch]struct{}{}}
}

// Touch notes what has changed in the world.
func (m *perPod[T]) Touch(touched []world.Touch) {
	if !m.known {
		return
	}
	for _, t := range touched {
		if t.Kind == world.KindPod || t.Kind == world.KindPrimaryNetwork {
			m.stale[t] = struct{}{}
		}
	}
}

// Update counts anew what was touched since it was last called; the first time, everything.
func (m *perPod[T]) Update(w *world.World) {
	if !m.known {
		m.known = true
		for p := range w.EachPod() {
			m.put(p.Key(), m.of(&w.View, p))
		}
	}
	for t := range m.stale {
		switch p := w.Pod(t.Key); {
		case t.Kind != world.KindPod:
			for p := range w.PodsIn(t.Key) {
				m.put(p.Key(), m.of(&w.View, p))
			}
		case p == nil:
			m.put(t.Key, nil)
		default:
			m.put(t.Key, m.of(&w.View, p))
		}
	}
	clear(m.stale)
}

// put replaces what a pod adds.
func (m *perPod[T]) put(pod string, list []T) {
	old := m.lists[pod]
	if slices.Equal(old, list) {
		return
	}
	m.add(old, -1)
	m.add(list, 1)
	if m.lists[pod] = list; len(list) == 0 {
		delete(m.lists, pod)
	}
}
