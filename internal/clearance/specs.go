package clearance

import (
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// spec is the part of an object that decides which pods it selects; zero without an object. Most changes are of
// statuses.
type spec struct {
	uid        string
	generation int64
	labels     string  // of a namespace, or those that a Service asks for; EgressServices with an endpoint
	families   [2]bool // in which a Service selects pods
}

// rank is the part of an object that decides, by family, which one of several objects has a claim to a pod that they
// select: annotations of an EgressIP, which leave the generation as it is, and whether it or an EgressService is active
// and binds.
type rank struct {
	active, binds   [2]bool
	neverOverridden bool
}

// known is the last version of an object, and when it came and changed its rank since.
type known struct {
	spec
	rank
	came   moment
	ranked [2]moment // by family
	// named are the EgressServices with an endpoint at an address, by the pod's name that its slice says.
	named map[string][]string
}

// readKnown returns the object of an entry.
func (m *Machine) readKnown(t world.Entry) (is known) {
	switch t.Kind {
	case world.KindNamespace:
		if n := m.w.Namespace(t.Key); n != nil {
			is.spec = spec{generation: 1, labels: labels.Set(n.Labels).String()}
		}
	case world.KindService:
		if s := m.w.Service(t.Key); s != nil && s.Pods != nil {
			is.spec = spec{uid: s.UID, generation: 1, labels: s.Pods.String(), families: s.Families()}
		}
	case world.KindEgressService:
		if s := m.w.EgressService(t.Key); s != nil {
			is.spec = spec{uid: s.UID, generation: 1 + s.Generation}
			for _, f := range m.w.Config.Families() {
				is.active[f], is.binds[f] = m.w.EgressServiceActive(t.Key, f), m.w.EgressServiceBinds(t.Key, f)
			}
		}
	case world.KindEgressServicesAt:
		if all := m.w.EndpointsAt(t.Key); len(all) > 0 {
			if unnamed := all[""]; len(unnamed) > 0 {
				is.spec = spec{generation: 1, labels: strings.Join(unnamed, " ")}
			}
			delete(all, "")
			is.named = all
		}
	case world.KindEgressIP:
		if e := m.w.EgressIP(t.Key); e != nil {
			is.spec = spec{uid: e.UID, generation: 1 + e.Generation}
			is.neverOverridden = e.NeverOverridden
			for _, f := range m.w.Config.Families() {
				is.active[f], is.binds[f] = e.Active(f), e.Binds(f)
			}
		}
	}
	return is
}

// followSpecs notes when what objects select has changed, and which of them comes first. An object that comes selects
// nothing for a node that does not know it; one that becomes another, or goes, may select there as before. So may an
// endpoint of an EgressService: without the name of a pod it selects any pod that gets its address, and else the next
// pod of that name, if that gets it. An EgressIPTraffic counts whenever it changes.
func (m *Machine) followSpecs() {
	if m.former != nil {
		m.readAllKnown()
	}
	for _, t := range m.changed {
		if t.Kind == world.KindEgressServiceActive {
			t.Kind = world.KindEgressService
		}
		was, is := m.known[t], m.readKnown(t)
		if t.Kind == world.KindTraffic || was.spec != is.spec && was.spec != (spec{}) {
			m.noteSelection(namespaceOf(t))
		}
		for pod, by := range was.named {
			if !slices.Equal(by, is.named[pod]) {
				m.noteSelection(t.Key + "/" + pod)
			}
		}
		if is.spec == (spec{}) && len(is.named) == 0 {
			delete(m.known, t)
			continue
		}
		is.came, is.ranked = was.came, was.ranked
		switch {
		case was.spec == (spec{}) && is.spec != (spec{}):
			is.came, m.ended = m.ends+1, true
		case was.rank != is.rank:
			is.noteRanked(was.rank, m.ends+1)
			m.ended = true
		}
		m.known[t] = is
	}
}

func (m *Machine) readAllKnown() {
	note := func(k world.Kind, keys []string) {
		for _, key := range keys {
			t := world.Entry{Kind: k, Key: key}
			m.known[t] = m.readKnown(t)
		}
	}
	for _, k := range [...]world.Kind{world.KindNamespace, world.KindService, world.KindEgressService,
		world.KindEgressIP} {
		note(k, m.w.Keys(k))
	}
	note(world.KindEgressServicesAt, m.w.EgressEndpoints())
}

// noteRanked notes for which families the rank is another one.
func (k *known) noteRanked(was rank, at moment) {
	for f := range k.ranked {
		if k.active[f] != was.active[f] || k.binds[f] != was.binds[f] || k.neverOverridden != was.neverOverridden {
			k.ranked[f] = at
		}
	}
}

// mostSelected bounds what is kept of namespaces that have gone.
const mostSelected = 1024

// noteSelection notes that what selects pods of a namespace, or one pod with an address, has changed.
func (m *Machine) noteSelection(of string) {
	if len(m.selected) == mostSelected {
		clear(m.selected)
		of = ""
	}
	m.selected[of], m.ended = m.ends+1, true
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

// selectedFor returns the moment that a node must have followed to know which objects a pod's packets of a family are
// for.
func (m *Machine) selectedFor(key string, claims []claim, f world.Family) moment {
	namespace, _, _ := strings.Cut(key, "/")
	return max(m.selected[""], m.selected[namespace], m.rankedFor(m.w.Pod(key), claims, f))
}

// selectedAt is selectedFor of a pod with an address that former endpoints have named.
func (m *Machine) selectedAt(key string, ip netip.Addr) moment {
	namespace, name, _ := strings.Cut(key, "/")
	return m.selected[namespace+"/"+ip.String()+"/"+name]
}

// rankedFor returns the moment from which on a node takes no other object that selects a pod for one with a claim. The
// other one had it until an object with a claim, or an EgressIP that forbids EgressServices, came, or until a rank
// changed. Other objects that come take no claim.
func (m *Machine) rankedFor(p *world.Pod, claims []claim, f world.Family) (latest moment) {
	var displaced bool
	note := func(kind world.Kind, object ref.Object) {
		is := m.known[world.Entry{Kind: kind, Key: object.Key()}]
		has := slices.ContainsFunc(claims, func(c claim) bool { return c.by.Object == object })
		if latest = max(latest, is.ranked[f]); has || is.neverOverridden {
			latest = max(latest, is.came)
		}
		displaced = displaced || !has
	}
	for _, e := range m.w.Selecting(p) {
		note(world.KindEgressIP, ref.Of(ref.EgressIP, e.Name))
	}
	for _, s := range m.w.EgressServicesOf(p, f) {
		note(world.KindEgressService, ref.Of(ref.EgressService, s.Key()))
	}
	if !displaced {
		return never
	}
	return latest
}
