package clearance

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Watches of two kinds are not ordered: a node may know the last change of one object, and not an earlier one of
// another kind. Then it may have a pod be an object's that never had a claim to it: an EgressIP that comes, say, for
// labels that the pod had before, or that a former pod with its address had. The pod's own claims go on meanwhile. So
// each change that may give packets to an object, its turn, has nodes asked whether they know the earlier ones of other
// kinds. A node that hears of a turn sooner than this one acts on it unasked (docs/architecture.md, "Where the promise
// ends").

// turn is a change of an object by which it, or another one, may get packets.
type turn struct {
	world.Entry
	// limited is the EgressIP that may get them by a change of an EgressIPTraffic; "": one that has changed itself.
	limited string
	// falls: the object had a claim before others, and those may get packets. former is what it was, of an EgressIP.
	falls  bool
	former *world.EgressIP
	// traffic are the labels of an EgressIPTraffic, before and now.
	traffic [2]labels.Set
	// services are the EgressServices that had or have an endpoint at an address.
	services []string
}

// addTurn adds the turns of an object that was, and is.
func (m *Machine) addTurn(t world.Entry, was, is known) {
	if t.Kind != world.KindTraffic {
		m.turns = append(m.turns, turn{Entry: t, services: append(was.endpointOf(), is.endpointOf()...)})
		if is.fallsFrom(was) {
			m.turns = append(m.turns, turn{Entry: t, falls: true, former: was.egressIP})
		}
		return
	}
	m.turns = append(m.turns, turn{Entry: t, traffic: [2]labels.Set{was.traffic, is.traffic}})
	for _, name := range m.w.Keys(world.KindEgressIP) {
		e := m.w.EgressIP(name)
		if e.Traffic != nil && (e.Traffic.Matches(was.traffic) || e.Traffic.Matches(is.traffic)) {
			m.turns = append(m.turns, turn{Entry: t, limited: name})
		}
	}
}

// noteTurns notes to whose packets objects may have claims, by their turns of this step, for nodes that do not know
// earlier changes.
func (m *Machine) noteTurns(changed map[world.PodAddr]struct{}) {
	late := map[world.Kind]map[string]bool{}
	for _, t := range m.turns {
		if late[t.Kind] == nil {
			late[t.Kind] = m.lateNodes(t.Kind)
		}
		namespace, nodes := namespaceOf(t.Entry), m.nodesOf(t)
		for key, p := range m.pods {
			of, _, _ := strings.Cut(key, "/")
			if len(late[t.Kind]) > 0 && p.isClaimed() && (namespace == "" || namespace == of) {
				m.noteTurn(t, nodes, late[t.Kind], key, changed)
			}
		}
	}
	m.turns = m.turns[:0]
}

// lateNodes are those that may not know the last change of a kind other than one.
func (m *Machine) lateNodes(but world.Kind) map[string]bool {
	late := map[string]bool{}
	for name, n := range m.nodes {
		for kind, at := range m.latest {
			if kind != but && at > n.heard {
				late[name] = true
			}
		}
	}
	return late
}

// nodesOf are the nodes at which an object may get packets by a turn: those that its status names, or all to which
// packets are led.
func (m *Machine) nodesOf(t turn) (nodes []string) {
	object := ref.OfKey(t.Key)
	switch {
	case t.limited != "":
		object = ref.OfKey(t.limited)
	case t.falls || t.Kind != world.KindEgressIP && t.Kind != world.KindEgressService:
		return sortedKeys(m.nodes)
	}
	for _, f := range m.w.Config.Families() {
		nodes = append(nodes, namedNodes(&m.w.View, object, f)...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// noteTurn does so for one pod. Its claims wait where a node may translate for the object. The nodes that they are led
// to are asked whether they know them: one may take the pod for the object's, and drop what another is to translate.
func (m *Machine) noteTurn(t turn, nodes []string, late map[string]bool, key string,
	changed map[world.PodAddr]struct{}) {
	p := m.pods[key]
	mayNot := func(node string) bool { return !late[node] || !m.mayTake(t, m.nodes[node].heard, key) }
	f := former{by: m.turnedBy(t), to: destinations.Everything(), at: slices.DeleteFunc(slices.Clone(nodes), mayNot),
		end: max(p.changed, latestBut(m.altered, t.Kind, key))}
	unaware := p.beginAgain(f.end, mayNot)
	for _, at := range p.addrs {
		isConcerned := t.Kind != world.KindEgressServicesAt || strings.HasSuffix(t.Key, "/"+at.IP.String())
		if !isConcerned || !unaware && len(f.at) == 0 {
			continue
		}
		if changed[at] = struct{}{}; len(f.at) > 0 {
			m.noteEnd(at, f)
		}
	}
}

// beginAgain has the claims begin later that lead to a node which may not know them, and says whether there are any.
func (p *pod) beginAgain(at moment, knows func(node string) bool) (did bool) {
	for _, claims := range p.claims {
		for i, c := range claims {
			if slices.ContainsFunc(c.nodes, func(n string) bool { return !knows(n) }) {
				claims[i].begun, did = max(c.begun, at), true
			}
		}
	}
	return did
}

// turnedBy is the object that may get packets by a turn; none if it may be any.
func (m *Machine) turnedBy(t turn) []world.Claimant {
	switch {
	case t.falls:
		return nil
	case t.limited != "":
		return []world.Claimant{m.w.ClaimantOf(ref.OfKey(t.limited))}
	case t.Kind == world.KindEgressIP, t.Kind == world.KindEgressService, t.Kind == world.KindService:
		return []world.Claimant{m.w.ClaimantOf(ref.OfKey(t.Key))}
	}
	if all := slices.Compact(slices.Sorted(slices.Values(t.services))); len(all) == 1 {
		return []world.Claimant{m.w.ClaimantOf(ref.OfKey(all[0]))}
	}
	return nil
}

// mayTake says whether a node that was heard of may take a pod for one of an object whose turn it was.
func (m *Machine) mayTake(t turn, heard moment, key string) bool {
	switch {
	case t.falls && t.Kind == world.KindEgressIP:
		return m.maySelect(t.former, heard, key)
	case t.Kind == world.KindEgressIP:
		return m.maySelect(m.w.EgressIP(t.Key), heard, key)
	case t.limited != "":
		return m.maySelect(m.w.EgressIP(t.limited), heard, key)
	case t.Kind == world.KindTraffic:
		return m.mayNarrow(t, heard, key)
	case t.Kind == world.KindService, t.Kind == world.KindEgressService:
		return m.mayBeBehind(t, heard, key)
	}
	return true
}

// mayNarrow says whether a node may know an EgressIP as it was, which selects the pod and an EgressIPTraffic.
func (m *Machine) mayNarrow(t turn, heard moment, key string) bool {
	may := func(e limitedBefore) bool {
		return e.end > heard && (e.Traffic.Matches(t.traffic[0]) || e.Traffic.Matches(t.traffic[1])) &&
			m.maySelect(e.EgressIP, heard, key)
	}
	return m.forgotLimited > heard || slices.ContainsFunc(m.limited, may)
}

// maySelect says whether an EgressIP may select a pod, by what a node knows of the pod and its namespace.
func (m *Machine) maySelect(e *world.EgressIP, heard moment, key string) bool {
	p := m.w.Pod(key)
	if e == nil || p == nil {
		return false
	}
	inNamespace := lastOf(m.selected, world.KindNamespace, p.Namespace) > heard
	if is := m.w.Namespace(p.Namespace); is != nil {
		inNamespace = inNamespace || e.Namespaces.Matches(labels.Set(is.Labels))
	}
	return inNamespace && (m.pods[key].changed > heard || e.Pods.Matches(labels.Set(p.Labels)))
}

// mayBeBehind says whether a node may know a pod as an endpoint of a Service that has an EgressService.
func (m *Machine) mayBeBehind(t turn, heard moment, key string) bool {
	p, s := m.w.Pod(key), m.w.Service(t.Key)
	isEgress := m.w.EgressService(t.Key) != nil || lastOf(m.altered, world.KindEgressService, p.Namespace) > heard
	isUnknown := m.pods[key].changed > heard || m.endpointsOf(key) > heard || m.mayHaveSelected(t.Key, heard, p)
	return isEgress && (isUnknown || s != nil && s.Pods != nil && s.Pods.Matches(labels.Set(p.Labels)) ||
		m.isEndpoint(t.Key, p))
}

// mayHaveSelected says whether a node may know a Service with a selector that selects a pod.
func (m *Machine) mayHaveSelected(service string, heard moment, p *world.Pod) bool {
	did := func(s selectorBefore) bool {
		return s.service == service && s.end > heard && s.Matches(labels.Set(p.Labels))
	}
	return m.forgotSelectors > heard || slices.ContainsFunc(m.selectors, did)
}

// endpointsOf returns the moment that a node must have followed to know the endpoints of EgressServices that may be, or
// were, a pod.
func (m *Machine) endpointsOf(key string) moment {
	namespace, _, _ := strings.Cut(key, "/")
	latest := lastOf(m.selected, world.KindEgressServicesAt, namespace)
	for _, at := range m.pods[key].addrs {
		latest = max(latest, m.selectedAt(key, at.IP))
	}
	return latest
}

func (m *Machine) isEndpoint(service string, p *world.Pod) bool {
	for _, f := range m.w.Config.Families() {
		for _, s := range m.w.EgressServicesOf(p, f) {
			if s.Key() == service {
				return true
			}
		}
	}
	return false
}

func (p *pod) isClaimed() bool { return len(p.claims[world.V4])+len(p.claims[world.V6]) > 0 }
