package zone

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// members are the pods that are in another network than the default one, or wait for it, the EgressIPs that select
// them, and the Services of their namespaces that all nodes serve.
type members struct {
	places   map[string]place          // by pod, "namespace/name"
	counts   map[string]map[string]int // pods by node and namespace
	selected map[string]map[string]int // pods by EgressIP and namespace
	hosts    map[string][]string       // nodes by EgressIP, as its status names them
	hosted   map[string][]string       // EgressIPs by node
	services map[string][]string       // those that all nodes serve, by namespace, of all namespaces
	serving  map[string]struct{}       // the namespaces of these that have a network of their own
	// stale is what has changed since it was last followed.
	stale struct{ pods, namespaces, egressIPs, services changes }
}

// place is where a pod is, and which EgressIPs select it.
type place struct {
	node, namespace string
	egressIPs       []string
}

func (a place) samePlace(b place) bool {
	return a.node == b.node && a.namespace == b.namespace && slices.Equal(a.egressIPs, b.egressIPs)
}

// changes are the keys of objects that have changed.
type changes map[string]struct{}

func newMembers() *members {
	m := &members{places: map[string]place{}, counts: map[string]map[string]int{},
		selected: map[string]map[string]int{}, hosts: map[string][]string{}, hosted: map[string][]string{},
		services: map[string][]string{}, serving: map[string]struct{}{}}
	m.stale.pods, m.stale.namespaces, m.stale.egressIPs, m.stale.services = changes{}, changes{}, changes{}, changes{}
	return m
}

// noteChanged takes in what changes.
func (m *members) noteChanged(e world.Entry) {
	switch e.Kind {
	case world.KindPod:
		m.stale.pods[e.Key] = struct{}{}
	case world.KindNamespace:
		m.stale.namespaces[e.Key] = struct{}{}
	case world.KindEgressIP:
		m.stale.egressIPs[e.Key] = struct{}{}
	case world.KindService:
		m.stale.services[e.Key] = struct{}{}
	}
}

// noteAll takes all pods, EgressIPs and Services for changed.
func (m *members) noteAll(w *world.World) {
	for _, namespace := range w.Keys(world.KindNamespace) {
		m.stale.namespaces[namespace] = struct{}{}
	}
	for _, name := range w.EgressIPs() {
		m.stale.egressIPs[name] = struct{}{}
	}
	for _, key := range w.Services() {
		m.stale.services[key] = struct{}{}
	}
}

// followChanges takes in what has changed, and calls changed for each node that has other pods, hosts an EgressIP for
// other ones, or serves other Services.
func (m *members) followChanges(w *world.World, changed func(node string)) {
	for name := range m.stale.egressIPs {
		m.followEgressIP(name, w.EgressIP(name), changed)
	}
	for namespace := range m.stale.namespaces {
		for _, p := range w.PodsIn(namespace) {
			m.stale.pods[p.Key()] = struct{}{}
		}
	}
	for key := range m.stale.pods {
		m.followPod(w, key, changed)
	}
	m.followServices(w, changed)
	clear(m.stale.egressIPs)
	clear(m.stale.services)
	clear(m.stale.namespaces)
	clear(m.stale.pods)
}

// followServices takes in which namespaces have Services that all nodes serve.
func (m *members) followServices(w *world.World, changed func(node string)) {
	stale := maps.Clone(m.stale.namespaces)
	for key := range m.stale.services {
		namespace, _, _ := strings.Cut(key, "/")
		world.NoteInIndex(m.services, namespace, key, w.ServiceSpec(key).ServedEverywhere())
		stale[namespace] = struct{}{}
	}
	turned := false
	for namespace := range stale {
		ns := w.Namespace(namespace)
		_, was := m.serving[namespace]
		is := len(m.services[namespace]) > 0 && ns != nil && ns.OwnNetwork
		turned = turned || was != is
		if is {
			m.serving[namespace] = struct{}{}
		} else {
			delete(m.serving, namespace)
		}
	}
	if turned {
		for _, node := range w.Nodes() {
			changed(node)
		}
	}
}

// followEgressIP takes in which nodes the status of an EgressIP names.
func (m *members) followEgressIP(name string, e *world.EgressIP, changed func(node string)) {
	was, is := m.hosts[name], []string(nil)
	if e != nil {
		for _, i := range e.Items {
			is = append(is, i.Node)
		}
	}
	slices.Sort(is)
	if is = slices.Compact(is); slices.Equal(was, is) {
		return
	}
	for _, node := range slices.Concat(was, is) {
		world.NoteInIndex(m.hosted, node, name, slices.Contains(is, node))
		if len(m.selected[name]) > 0 {
			changed(node)
		}
	}
	if m.hosts[name] = is; len(is) == 0 {
		delete(m.hosts, name)
	}
}

func (m *members) followPod(w *world.World, key string, changed func(node string)) {
	was, is := m.places[key], placeOf(w, w.Pod(key))
	if was.samePlace(is) {
		return
	}
	m.countPod(was, -1, changed)
	m.countPod(is, 1, changed)
	if m.places[key] = is; is.node == "" {
		delete(m.places, key)
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
	at := place{node: p.Node, namespace: p.Namespace}
	for _, e := range w.Selecting(p) {
		at.egressIPs = append(at.egressIPs, e.Name)
	}
	return at
}

// countPod adds a pod or takes it away, and calls changed for the nodes that need another part for it.
func (m *members) countPod(at place, by int, changed func(node string)) {
	if at.node == "" {
		return
	}
	addCount(m.counts, at.node, at.namespace, by)
	changed(at.node)
	for _, e := range at.egressIPs {
		if addCount(m.selected, e, at.namespace, by) {
			for _, node := range m.hosts[e] {
				changed(node)
			}
		}
	}
}

// addCount changes a count, and says whether it has become zero, or is zero no more.
func addCount(counts map[string]map[string]int, key, of string, by int) (turned bool) {
	list := counts[key]
	if list == nil {
		list = map[string]int{}
		counts[key] = list
	}
	was := list[of]
	if list[of] += by; list[of] == 0 {
		delete(list, of)
	}
	if len(list) == 0 {
		delete(counts, key)
	}
	return (was == 0) != (was+by == 0)
}

// networksOf are the networks of which a node needs a part, sorted: those of its pods, those of pods that an EgressIP
// selects which the node hosts, and those of Services that all nodes serve. Namespaces that wait for their network
// count for none.
func (m *members) networksOf(w *world.View, node string) (out []string) {
	add := func(namespaces iter.Seq[string]) {
		for namespace := range namespaces {
			if name := w.PrimaryNetwork(namespace); name != "" && name != ref.DefaultNetwork {
				out = append(out, name)
			}
		}
	}
	add(maps.Keys(m.counts[node]))
	add(maps.Keys(m.serving))
	for _, e := range m.hosted[node] {
		add(maps.Keys(m.selected[e]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hasMembers reports whether a node has such pods, hosts an EgressIP for such pods, or serves such Services. The
// network of a namespace can come, go and be another one.
func (m *members) hasMembers(node string) bool {
	selects := func(e string) bool { return len(m.selected[e]) > 0 }
	return len(m.counts[node]) > 0 || len(m.serving) > 0 || slices.ContainsFunc(m.hosted[node], selects)
}
