package clearance

import (
	"fmt"
	"maps"
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
	came     moment
	ranked   [2]moment       // by family
	on       []string        // other nodes that its status names
	egressIP *world.EgressIP // nil of other kinds
	traffic  labels.Set      // of an EgressIPTraffic
	pods     labels.Selector // of a Service; nil if it selects none
	// activity is what an EgressService and its Service each say of whether the former is active.
	activity string
	// named are the EgressServices with an endpoint at an address, by the pod's name that its slice says.
	named   map[string][]string
	unnamed []string // those whose slice says none
}

// readKnown returns the object of an entry.
func (m *Machine) readKnown(t world.Entry) (is known) {
	switch t.Kind {
	case world.KindNamespace:
		if n := m.w.Namespace(t.Key); n != nil {
			is.spec = spec{generation: 1, labels: labels.Set(n.Labels).String()}
		}
	case world.KindService:
		if s := m.w.Service(t.Key); s != nil {
			is.spec = spec{uid: s.UID, generation: 1}
			if s.Pods != nil {
				is.pods, is.labels, is.families = s.Pods, s.Pods.String(), s.Families()
			}
			is.activity = fmt.Sprint(s.LoadBalancer, s.LoadBalancerIPs)
		}
	case world.KindEgressService:
		if s := m.w.EgressService(t.Key); s != nil {
			is.spec = spec{uid: s.UID, generation: 1 + s.Generation}
			is.on = m.nodesOf(turn{Entry: t})
			is.activity = fmt.Sprint(s.Host, s.InForce, s.Items, s.DropWhenUnassigned)
			for _, f := range m.w.Config.Families() {
				is.active[f], is.binds[f] = m.w.EgressServiceActive(t.Key, f), m.w.EgressServiceBinds(t.Key, f)
			}
		}
	case world.KindEgressServicesAt:
		if all := m.w.EndpointsAt(t.Key); len(all) > 0 {
			if unnamed := all[""]; len(unnamed) > 0 {
				is.spec, is.unnamed = spec{generation: 1, labels: strings.Join(unnamed, " ")}, unnamed
			}
			delete(all, "")
			is.named = all
		}
	case world.KindEgressIP:
		if e := m.w.EgressIP(t.Key); e != nil {
			is.spec = spec{uid: e.UID, generation: 1 + e.Generation}
			is.on, is.egressIP = m.nodesOf(turn{Entry: t}), e
			is.neverOverridden = e.NeverOverridden
			for _, f := range m.w.Config.Families() {
				is.active[f], is.binds[f] = e.Active(f), e.Binds(f)
			}
		}
	case world.KindTraffic:
		if all, has := m.w.TrafficLabels(t.Key); has {
			is.spec, is.traffic = spec{generation: 1}, all
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
		if t.Kind == world.KindEndpoints {
			m.noteEndpoints(t.Key)
		}
	}
	for _, t := range m.changed {
		if t.Kind == world.KindEgressServiceActive {
			t.Kind = world.KindEgressService
		}
		if t.Kind != world.KindEndpoints {
			m.followSpec(t)
		}
	}
}

func (m *Machine) followSpec(t world.Entry) {
	was, is := m.known[t], m.readKnown(t)
	ended := t.Kind == world.KindTraffic || was.spec != is.spec && was.spec != (spec{})
	if ended {
		m.noteSelection(t.Kind, namespaceOf(t))
	}
	for pod, by := range was.named {
		if !slices.Equal(by, is.named[pod]) {
			m.noteSelection(t.Kind, t.Key+"/"+pod)
		}
	}
	is.came, is.ranked = was.came, was.ranked
	switch {
	case was.spec == (spec{}) && is.spec != (spec{}):
		is.came = m.ends + 1
		m.noteComing(t)
	case was.rank != is.rank:
		is.noteRanked(was.rank, m.ends+1)
	}
	altered := ended || !is.decidesAs(was)
	if altered {
		m.noteAltered(t)
		m.noteLimited(was)
	}
	if was.pods != nil && was.spec != is.spec {
		m.noteFormerSelector(t.Key, was.pods)
	}
	if m.former == nil && (altered || !slices.Equal(is.on, was.on)) {
		m.addTurn(t, was, is)
	}
	if m.known[t] = is; is.spec == (spec{}) && len(is.named) == 0 {
		delete(m.known, t)
	}
}

// decidesAs says whether an object decides who has claims as it did before.
func (k known) decidesAs(o known) bool {
	return k.spec == o.spec && k.rank == o.rank && k.activity == o.activity &&
		maps.EqualFunc(k.named, o.named, slices.Equal[[]string])
}

func (m *Machine) readAllKnown() {
	note := func(k world.Kind, keys []string) {
		for _, key := range keys {
			t := world.Entry{Kind: k, Key: key}
			m.known[t] = m.readKnown(t)
		}
	}
	for _, k := range [...]world.Kind{world.KindNamespace, world.KindService, world.KindEgressService,
		world.KindEgressIP, world.KindTraffic} {
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

// selection is what objects of a kind select: pods of one namespace, or of all (of is ""), or one pod with an address
// ("namespace/address/name").
type selection struct {
	kind world.Kind
	of   string
}

// selecting are the kinds that decide with pods which objects have claims.
var selecting = [...]world.Kind{world.KindNamespace, world.KindService, world.KindEgressService,
	world.KindEgressServicesAt, world.KindEgressIP, world.KindTraffic}

// noteSelection notes that what objects of a kind select has changed.
func (m *Machine) noteSelection(k world.Kind, of string) { m.noteNow(m.selected, selection{k, of}) }

// noteAltered notes that an object decides otherwise than before who has a claim.
func (m *Machine) noteAltered(t world.Entry) { m.noteNow(m.altered, selection{t.Kind, namespaceOf(t)}) }

// noteEndpoints notes that endpoints of a Service have changed, or may have: which, is not known while it has no
// EgressService.
func (m *Machine) noteEndpoints(service string) {
	now := m.ends + 1
	if len(m.endpoints) >= mostSelected {
		clear(m.endpoints)
		m.forgotEndpoints = now
	}
	m.endpoints[service], m.ended = now, true
}

// noteComing notes which endpoints nodes may know of a Service with an EgressService, one of which comes: those of a
// Service that is not there are not followed.
func (m *Machine) noteComing(t world.Entry) {
	switch t.Kind {
	case world.KindService:
		if m.noteEndpoints(t.Key); m.w.EgressService(t.Key) != nil {
			m.noteEarlierEndpoints(t.Key)
		}
	case world.KindEgressService:
		m.noteEarlierEndpoints(t.Key)
	}
}

// noteEarlierEndpoints notes when endpoints of a Service last changed of which nobody followed which pods they were:
// each pod of the namespace may have been one.
func (m *Machine) noteEarlierEndpoints(service string) {
	namespace, _, _ := strings.Cut(service, "/")
	k, at := world.KindEgressServicesAt, max(m.endpoints[service], m.forgotEndpoints)
	if of := (selection{k, namespace}); at != never {
		m.selected[of], m.altered[of] = max(m.selected[of], at), max(m.altered[of], at)
		m.latest[k] = max(m.latest[k], at)
	}
}

// limitedBefore is an EgressIP with a trafficSelector as nodes may know it that have not followed a moment.
type limitedBefore struct {
	*world.EgressIP
	end moment
}

// mostLimited bounds how many former EgressIPs with a trafficSelector are kept.
const mostLimited = 256

// noteLimited notes that nodes may know an EgressIP with a trafficSelector as it was.
func (m *Machine) noteLimited(was known) {
	if !was.isLimited() {
		return
	}
	now := m.ends + 1
	if len(m.limited) >= mostLimited {
		m.limited, m.forgotLimited = nil, now
	}
	m.limited = append(m.limited, limitedBefore{was.egressIP, now})
}

// selectorBefore is a Service's as nodes may know it that have not followed a moment.
type selectorBefore struct {
	service string
	labels.Selector
	end moment
}

// mostSelectors bounds how many former selectors of Services are kept.
const mostSelectors = 1024

func (m *Machine) noteFormerSelector(service string, s labels.Selector) {
	now := m.ends + 1
	if len(m.selectors) >= mostSelectors {
		m.selectors, m.forgotSelectors = nil, now
	}
	m.selectors = append(m.selectors, selectorBefore{service, s, now})
}

// endpointOf are the EgressServices that have an endpoint at an address.
func (k known) endpointOf() (all []string) {
	for _, by := range k.named {
		all = append(all, by...)
	}
	return append(all, k.unnamed...)
}

func (k known) isLimited() bool { return k.egressIP != nil && k.egressIP.Traffic != nil }

// fallsFrom says whether an object no longer comes before others as it did, for some pods.
func (k known) fallsFrom(was known) bool {
	falls := was.spec != (spec{}) && was.spec != k.spec || was.neverOverridden && !k.neverOverridden
	for f := range was.active {
		falls = falls || was.active[f] && !k.active[f] || was.binds[f] && !k.binds[f]
	}
	return falls
}

func (m *Machine) noteNow(all map[selection]moment, of selection) {
	now := m.ends + 1
	if len(all) >= mostSelected {
		clear(all)
		for _, k := range selecting {
			all[selection{k, ""}], m.latest[k] = now, now
		}
	}
	all[of], m.latest[of.kind], m.ended = now, now, true
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
	return max(latestBut(m.selected, world.KindPod, key), m.rankedFor(m.w.Pod(key), claims, f))
}

// latestBut returns the last of some moments for a pod, but for those of one kind. All kinds may have changed before
// this process began.
func latestBut(of map[selection]moment, but world.Kind, key string) moment {
	namespace, _, _ := strings.Cut(key, "/")
	latest := beforeStart
	for _, k := range selecting {
		if k != but {
			latest = max(latest, lastOf(of, k, namespace))
		}
	}
	return latest
}

// lastOf is the last moment of one kind for pods of a namespace.
func lastOf(of map[selection]moment, k world.Kind, namespace string) moment {
	return max(of[selection{k, ""}], of[selection{k, namespace}])
}

// selectedAt is selectedFor of a pod with an address that former endpoints have named.
func (m *Machine) selectedAt(key string, ip netip.Addr) moment {
	namespace, name, _ := strings.Cut(key, "/")
	return m.selected[selection{world.KindEgressServicesAt, namespace + "/" + ip.String() + "/" + name}]
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
