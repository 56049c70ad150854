package handover

import (
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// Pods are the pods as the deciders of one term count them. A pod is looked at once for all lists that follow from it,
// and again when something changes that was read for it. Property tests compare what is summed up from that with a
// count from nothing.
type Pods struct {
	lists   []podList
	readers world.Readers[string]
	stale   map[string]struct{}
	known   bool // false: a list has not seen all pods
}

// podList is a PodList of any type.
type podList interface {
	renewPod(w *world.View, key string, p *world.Pod)
}

// NewPods has looked at no pod yet.
func NewPods() *Pods {
	stale := map[string]struct{}{}
	return &Pods{readers: world.NewReaders(stale), stale: stale}
}

// NoteChanged notes that a pod comes, changes or goes.
func (m *Pods) NoteChanged(e world.Entry) {
	if m.known && e.Kind == world.KindPod {
		m.stale[e.Key] = struct{}{}
	}
}

// Update looks again at what has changed since the last call; the first time, at everything.
func (m *Pods) Update(w *world.World) {
	if !m.known {
		m.known = true
		for p := range w.EachPod() {
			m.stale[p.Key()] = struct{}{}
		}
	}
	for key := range m.stale {
		m.readers.ReaderOf(key).Read(w, func(v *world.View) {
			p := v.Pod(key)
			for _, list := range m.lists {
				list.renewPod(v, key, p)
			}
		})
		if !w.Has(world.KindPod, key) {
			m.readers.ForgetUnit(key)
		}
	}
	clear(m.stale)
}

// PodList keeps a list for each pod, and counts its entries.
type PodList[T comparable] struct {
	of    func(*world.View, *world.Pod) []T // sorted, each once
	count func(list []T, n int)             // n is 1 or -1
	Lists map[string][]T                    // by pod; only those with any
}

// NewPodList is a list of all pods that has no pod yet.
func NewPodList[T comparable](pods *Pods, of func(*world.View, *world.Pod) []T,
	count func(list []T, n int)) *PodList[T] {
	l := &PodList[T]{of: of, count: count, Lists: map[string][]T{}}
	pods.lists, pods.known = append(pods.lists, l), false
	return l
}

func (l *PodList[T]) renewPod(w *world.View, key string, p *world.Pod) {
	var list []T
	if p != nil {
		list = l.of(w, p)
	}
	old := l.Lists[key]
	if slices.Equal(old, list) {
		return
	}
	l.count(old, -1)
	l.count(list, 1)
	if l.Lists[key] = list; len(list) == 0 {
		delete(l.Lists, key)
	}
}
