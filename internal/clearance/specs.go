package clearance

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/world"
)

// spec is what an object has that decides which pods it has claims to; zero without an object. Most changes are of
// statuses.
type spec struct {
	uid        string
	generation int64
	labels     string // of a namespace, or those that a Service asks for
	// flags are two annotations of an EgressIP, which leave the generation as it is. Of an EgressService they say
	// whether it is active and whether it binds, by family.
	flags [4]bool
}

// specOf returns that of the object of an entry.
func (m *Machine) specOf(t world.Entry) spec {
	switch t.Kind {
	case world.KindNamespace:
		if n := m.w.Namespace(t.Key); n != nil {
			return spec{generation: 1, labels: labels.Set(n.Labels).String()}
		}
	case world.KindService:
		if s := m.w.Service(t.Key); s != nil && s.Pods != nil {
			return spec{uid: s.UID, generation: 1, labels: s.Pods.String()}
		}
	case world.KindEgressService:
		if s := m.w.EgressService(t.Key); s != nil {
			return spec{uid: s.UID, generation: 1 + s.Generation, flags: m.activityOf(t.Key)}
		}
	case world.KindEgressIP:
		if e := m.w.EgressIP(t.Key); e != nil {
			return spec{uid: e.UID, generation: 1 + e.Generation,
				flags: [4]bool{e.NeverOverridden, e.DropWhenUnassigned}}
		}
	}
	return spec{}
}

// activityOf follows from the Service's type and addresses, too, and from the status of the EgressService.
func (m *Machine) activityOf(egressService string) [4]bool {
	active := func(f world.Family) bool { return m.w.EgressServiceActive(egressService, f) }
	binds := func(f world.Family) bool { return m.w.EgressServiceBinds(egressService, f) }
	return [4]bool{active(world.V4), active(world.V6), binds(world.V4), binds(world.V6)}
}

// followSpecs notes when what objects select has changed. One that comes changes nothing for a node that does not know
// it; one that becomes another, or goes, may select there as before. An EgressIPTraffic counts whenever it changes.
func (m *Machine) followSpecs() {
	if m.former != nil {
		for _, k := range []world.Kind{world.KindNamespace, world.KindService, world.KindEgressService,
			world.KindEgressIP} {
			for _, key := range m.w.Keys(k) {
				t := world.Entry{Kind: k, Key: key}
				m.specs[t] = m.specOf(t)
			}
		}
	}
	for _, t := range m.changed {
		if t.Kind == world.KindEgressServiceActive {
			t.Kind = world.KindEgressService
		}
		was, is := m.specs[t], m.specOf(t)
		if m.specs[t] = is; is == (spec{}) {
			delete(m.specs, t)
		}
		if t.Kind == world.KindTraffic || was != is && was != (spec{}) {
			m.noteSelection(namespaceOf(t))
		}
	}
}

// mostSelected bounds what is kept of namespaces that have gone.
const mostSelected = 1024

func (m *Machine) noteSelection(namespace string) {
	if len(m.selected) == mostSelected {
		clear(m.selected)
		namespace = ""
	}
	m.selected[namespace], m.ended = m.ends+1, true
}

// namespaceOf is whose pods an object selects; "" of one that selects in several.
func namespaceOf(t world.Entry) string {
	if t.Kind == world.KindNamespace {
		return t.Key
	}
	namespace, _, namespaced := strings.Cut(t.Key, "/")
	if !namespaced {
		return ""
	}
	return namespace
}

// selectedFor is the moment that a node must have followed to know what objects select of a pod's namespace.
func (m *Machine) selectedFor(pod string) moment {
	namespace, _, _ := strings.Cut(pod, "/")
	return max(m.selected[""], m.selected[namespace])
}
