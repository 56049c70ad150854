package zone

import (
	"slices"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// members are the pods that are in another network than the default one, or wait for it.
type members struct {
	places map[string]place                   // by pod, "namespace/name"
	counts map[string]map[string]int          // pods by node and namespace
	stale  struct{ pods, namespaces changes } // since they were last followed
}

// place is where a pod is.
type place struct{ node, namespace string }

// changes are the keys of objects that have changed.
type changes map[string]struct{}

func newMembers() *members {
	m := &members{places: map[string]place{}, counts: map[string]map[string]int{}}
	m.stale.pods, m.stale.namespaces = changes{}, changes{}
	return m
}

// noteChanged takes in what changes.
func (m *members) noteChanged(e world.Entry) {
	switch e.Kind {
	case world.KindPod:
		m.stale.pods[e.Key] = struct{}{}
	case world.KindNamespace:
		m.stale.namespaces[e.Key] = struct{}{}
	}
}

// noteAll takes all pods for changed.
func (m *members) noteAll(w *world.World) {
	for _, namespace := range w.Keys(world.KindNamespace) {
		m.stale.namespaces[namespace] = struct{}{}
	}
}

// followChanges takes in what has changed, and calls changed for each node that has other pods.
func (m *members) followChanges(w *world.World, changed func(node string)) {
	for namespace := range m.stale.namespaces {
		for _, p := range w.PodsIn(namespace) {
			m.stale.pods[p.Key()] = struct{}{}
		}
	}
	for key := range m.stale.pods {
		m.followPod(w, key, changed)
	}
	clear(m.stale.namespaces)
	clear(m.stale.pods)
}

func (m *members) followPod(w *world.World, key string, changed func(node string)) {
	was, is := m.places[key], placeOf(w, w.Pod(key))
	if was == is {
		return
	}
	if was != (place{}) {
		m.countPod(was, -1)
		delete(m.places, key)
		changed(was.node)
	}
	if is != (place{}) {
		m.countPod(is, 1)
		m.places[key] = is
		changed(is.node)
	}
}

// placeOf is where a pod is, or zero if it needs no interface beside the default network's.
func placeOf(w *world.World, p *world.Pod) place {
	if p == nil || p.Node == "" || p.HostNetwork || p.Completed {
		return place{}
	}
	if ns := w.Namespace(p.Namespace); ns == nil || !ns.OwnNetwork {
		return place{}
	}
	return place{p.Node, p.Namespace}
}

func (m *members) countPod(at place, by int) {
	of := m.counts[at.node]
	if of == nil {
		of = map[string]int{}
		m.counts[at.node] = of
	}
	if of[at.namespace] += by; of[at.namespace] == 0 {
		delete(of, at.namespace)
	}
	if len(of) == 0 {
		delete(m.counts, at.node)
	}
}

// networksOf are the networks of the pods of a node, sorted. Pods whose namespace waits for its network count for none.
func (m *members) networksOf(w *world.View, node string) (out []string) {
	for namespace := range m.counts[node] {
		if name := w.PrimaryNetwork(namespace); name != "" && name != ref.DefaultNetwork {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hasPods says whether a node has such pods. The network of a namespace can come, go and be another one.
func (m *members) hasPods(node string) bool { return len(m.counts[node]) > 0 }
