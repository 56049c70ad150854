package simulate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/test/oracle"
)

// outside are destinations, one a family each: x, and y for what EgressIPTraffics tell apart.
var outside = map[string][2]netip.Addr{
	"x": {netip.MustParseAddr("172.18.0.100"), netip.MustParseAddr("fc00:f853:ccd:e793::100")},
	"y": {netip.MustParseAddr("172.18.0.101"), netip.MustParseAddr("fc00:f853:ccd:e793::101")},
}

// verdict walks packets of all pods over what all nodes' targets hold, and asks the oracle.
type verdict struct {
	s      *Sim
	oracle *oracle.Oracle
	source *kube.Source
	reader *trace.Reader
	read   *trace.Cluster
	stale  trace.Network // plans that have changed since they were read
	due    time.Time     // when to look though nothing has changed
	walks  int
	wrong  string
	// lenient knows which agents cannot follow.
	lenient   *oracle.Oracle
	skew      skew
	excused   int
	disturbed []disturbance
	// translates is the object that a node translates to an address for, by node.
	translates map[*machine]map[netip.Addr]translation
	both       map[answered]time.Time // since when two nodes have answered for an address
	dropped    map[packet]bool        // when it was last looked at
	losses     map[loss]time.Time     // since when
	calm       time.Time              // from when on nothing that has happened makes a right source wrong
}

func newVerdict(s *Sim) *verdict {
	return &verdict{s: s, oracle: oracle.New(s.config),
		skew: newSkew(), translates: map[*machine]map[netip.Addr]translation{},
		lenient: oracle.New(s.config),
		source:  kube.NewSource(nil, quiet, kube.Followed(all.ServedKinds().AllResources()...)...),
		reader:  readers.Get().(*trace.Reader),
		read:    &trace.Cluster{},
		stale:   trace.Network{}}
}

// readers keep what they have made of texts from run to run.
var readers = sync.Pool{New: func() any { return trace.NewReader() }}

// see shows the oracle what the API has.
func (v *verdict) see(plural string, o object, gone bool) {
	if plural == "egressnodes" {
		return
	}
	v.skew.see(v.s.now, o, gone)
	store := v.source.Store(v.s.api.kinds[plural])
	if o = o.DeepCopyObject().(object); gone {
		must(store.Delete(o))
	} else {
		must(store.Update(o))
	}
	v.apply()
}

// relist shows the oracle a history that has gone back. Its source is a new one: it must not depend on what it judges.
func (v *verdict) relist() {
	v.source = kube.NewSource(nil, quiet, kube.Followed(all.ServedKinds().AllResources()...)...)
	for _, plural := range slices.Sorted(maps.Keys(v.s.api.kinds)) {
		if plural != "egressnodes" {
			store := v.source.Store(v.s.api.kinds[plural])
			must(store.Replace(v.s.api.list(v.s.api.kinds[plural]), strconv.Itoa(v.s.api.version)))
		}
	}
	v.apply()
}

// apply has the oracle take in what its source has.
func (v *verdict) apply() {
	for len(v.source.Changes()) > 0 {
		change := <-v.source.Changes()
		v.oracle.Apply(v.s.now, change)
		v.lenient.Apply(v.s.now, change)
	}
	if calm := v.s.now.Add(oracle.Promise + time.Second); calm.After(v.calm) {
		v.calm = calm
	}
}

func (v *verdict) changed(m *machine) { v.stale[m.name] = m.have }

// look walks packets if any plan has changed, and now and then.
func (v *verdict) look() {
	if len(v.stale) == 0 && (v.s.now.Before(v.due) || v.s.now.After(v.calm)) {
		return
	}
	v.due = v.s.now.Add(500 * time.Millisecond)
	var err error
	if v.read, err = v.reader.Reread(v.read, v.stale); err != nil {
		v.wrong = err.Error()
		return
	}
	v.stale = trace.Network{}
	v.dropped = map[packet]bool{}
	for _, x := range v.s.packets() {
		ends := v.walk(x)
		if isDropped(ends) {
			v.dropped[x] = true
		}
		for _, end := range ends {
			v.judge(x.from, end, x.dst)
		}
	}
}

func isDropped(ends []trace.End) bool {
	return !slices.ContainsFunc(ends, func(e trace.End) bool { return e.Kind != trace.Dropped })
}

// packet is one that a pod sends by its primary network.
type packet struct {
	from     *pod
	src, dst netip.Addr
}

// packets are those of all pods, to all destinations that differ.
func (s *Sim) packets() (out []packet) {
	names := []string{"x", "y"}
	if !s.tellsApart {
		names = names[:1]
	}
	for _, p := range s.sending() {
		for _, name := range names {
			for i, dst := range outside[name] {
				out = append(out, packet{p, p.at.In(p.primary().Network)[i], dst})
			}
		}
	}
	return out
}

func (v *verdict) walk(x packet) []trace.End {
	v.walks++
	return v.read.Walk(trace.Packet{Src: x.src, Dst: x.dst, Proto: "udp", DstPort: 9,
		Network: x.from.primary()})
}

func (v *verdict) judge(p *pod, end trace.End, dst netip.Addr) {
	if end.Kind == trace.Dropped {
		return
	}
	packet := oracle.Packet{At: v.s.now, Since: p.caughtUp, Pod: p.key, Src: end.Src, Dst: dst}
	right := v.oracle.Judge(packet)
	if v.wrong != "" {
		return
	}
	if right == "" {
		v.judgeNode(p, end)
		return
	}
	if v.skew.explains(v.followedAt(p.on.name, end.Node), v.s.now.Add(-oracle.Promise), p, end.Src, dst) {
		return
	}
	if v.lenient.Judge(packet) == "" && v.cannotFollow(p.on.name) && v.cannotFollow(end.Node) {
		v.excused++ // the pod's node leads there as before, and the other translates as before: nobody can change it
		return
	}
	if v.cameAndWent(p, end, dst, right) || v.heardFirst(p, end, dst) {
		v.excused++
		return
	}
	v.wrong = fmt.Sprintf("%v: what pod %s on %s sends to %v goes %s; right is %s", v.s.told(), p.name(), p.on.name,
		dst, end, right)
}

// judgeNode fails the run if a node translates to an address that no status gives it.
func (v *verdict) judgeNode(p *pod, end trace.End) {
	m := v.s.machines[end.Node]
	if p.isInOwnNetwork() && isOnLinks(end.Src) {
		v.wrong = fmt.Sprintf("%v: what pod %s on %s sends goes %s: no link serves a network of users", v.s.told(),
			p.name(), p.on.name, end)
	}
	if !isOf(m, end.Src) && !v.skew.isNamed(v.followedAt(p.on.name, end.Node), end.Node, end.Src) {
		v.wrong = fmt.Sprintf("%v: what pod %s on %s sends goes %s, and no status names that node", v.s.told(), p.name(),
			p.on.name, end)
	}
}

// cameAndWent reports whether a source is right by a change that came and went while the pod's node could not follow,
// so that the node has not seen the end of a claim. The node that translates has followed the first half alone. This is
// where the promise ends (docs/architecture.md).
func (v *verdict) cameAndWent(p *pod, end trace.End, dst netip.Addr, right string) bool {
	return v.cannotFollow(end.Node) && slices.ContainsFunc(v.disturbed, func(d disturbance) bool {
		// Without a source Judge says what was right, before anything that the node did not follow any more.
		before := oracle.Packet{At: d.from.Add(-oracle.Ahead), Pod: p.key, Dst: dst}
		return d.node == p.on.name && v.oracle.Judge(before) == right &&
			v.skew.explains(d.from, v.s.now.Add(-oracle.Promise), p, end.Src, dst)
	})
}

// followedAt returns the latest time whose state both nodes have followed by now: a promise ago, or a promise before
// the faults that keep both from following.
func (v *verdict) followedAt(pods, gives string) time.Time {
	at := v.s.now.Add(-oracle.Promise)
	if !v.cannotFollow(pods) || !v.cannotFollow(gives) {
		return at
	}
	for _, node := range []string{pods, gives} {
		if since := v.disturbedSince(node).Add(-oracle.Promise); since.Before(at) {
			at = since
		}
	}
	return at
}

// disturbedSince returns when the first of the faults began that have kept a node from following until now, one after
// the other: what a fault has kept from it, it need not have followed before the next one.
func (v *verdict) disturbedSince(node string) time.Time {
	since, all := v.s.now, slices.Clone(v.disturbed)
	slices.SortFunc(all, func(a, b disturbance) int { return b.to.Compare(a.to) })
	for _, d := range all {
		if d.node == node && d.concerns(since) {
			since = d.from
		}
	}
	return since
}

// cannotFollow says whether a node's agent cannot, or could not until a promise ago.
func (v *verdict) cannotFollow(node string) bool {
	return slices.ContainsFunc(v.disturbed, func(d disturbance) bool {
		return d.node == node && d.concerns(v.s.now)
	})
}

// disturbance is a time in which a node's agent cannot follow.
type disturbance struct {
	node     string
	from, to time.Time
	late     bool // watches alone are late
}

// concerns reports whether the node cannot follow at a time, or could not until a promise before.
func (d disturbance) concerns(at time.Time) bool {
	return !at.Before(d.from) && !at.After(d.to.Add(oracle.Promise))
}

// disturb notes that a node's agent cannot follow.
func (v *verdict) disturb(node string, from, to time.Time, late bool) {
	v.lenient.Disturb(node, from)(to)
	v.disturbed = append(v.disturbed, disturbance{node, from, to, late})
	if calm := to.Add(oracle.Promise + time.Second); calm.After(v.calm) {
		v.calm = calm
	}
}

// atRest says that every pod gets through, with the right source, where all has been well for a while.
func (v *verdict) atRest() {
	v.calm = v.s.now
	if v.look(); v.wrong != "" {
		return
	}
	for _, x := range v.s.packets() {
		for _, end := range v.walk(x) {
			if end.Kind == trace.Dropped && v.served(x.from) {
				v.wrong = fmt.Sprintf("at rest, what pod %s on %s sends to %v is %s", x.from.name(), x.from.on.name,
					x.dst, end)
				return
			}
		}
	}
}

// served says whether a pod's packets must get through: it has no EgressIP, or some node may host that one's
// addresses.
func (v *verdict) served(p *pod) bool {
	o := get[*corev1.Pod](v.s.api, "pods", p.key)
	if o == nil || v.s.mayBeUnserved(p) || v.s.hasLostSubnets(p) {
		return false
	}
	tenant := get[*corev1.Namespace](v.s.api, "namespaces", p.namespace()).Labels["tenant"]
	if v.s.api.mayDrop(o.Labels["group"]) {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(v.s.api.objects["egressips"])) {
		e := v.s.api.egressIP(name)
		if tenant == "x" && e.Spec.PodSelector.MatchLabels["group"] == o.Labels["group"] {
			return slices.ContainsFunc(slices.Collect(maps.Values(v.s.api.objects["nodes"])), isAssignable)
		}
	}
	return true
}

// mayDrop reports whether an object that selects a group has what it is not assigned for dropped.
func (a *api) mayDrop(group string) bool {
	for _, o := range a.objects["egressips"] {
		if o.(*v1.EgressIP).Spec.PodSelector.MatchLabels["group"] == group && dropsUnassigned(o) {
			return true
		}
	}
	for key, o := range a.objects["egressservices"] {
		s := get[*corev1.Service](a, "services", key)
		if s != nil && s.Spec.Selector["group"] == group && dropsUnassigned(o) {
			return true
		}
	}
	return false
}

func dropsUnassigned(o object) bool { return o.GetAnnotations()[v1.AnnotationWhenUnassigned] != "" }

func isAssignable(node object) bool {
	_, is := node.GetLabels()["k8s.ovn.org/egress-assignable"]
	return is
}

// addresses are those of an EgressIP by its name, a letter: one a family on the nodes' network; with 1 a further one of
// IPv4; with 2 or 3 those on the nodes' links instead.
func addresses(name string, which int) []netip.Addr {
	i := 2 * int(name[0]-'a')
	switch which {
	case 1:
		return append(compiletest.EgressAddr(i), compiletest.EgressAddr(i + 1)[0])
	case 2, 3:
		return compiletest.SecondaryAddr(i + which - 2)
	}
	return compiletest.EgressAddr(i)
}
