package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/tunnel"
	"github.com/egret-net/egret/internal/world"
)

// leaseLasts is the agents' default.
const leaseLasts = 40 * time.Second

// machine is one node: what its targets hold, and its agent. The targets go on when the agent does not.
type machine struct {
	s    *Sim
	name string // of its Node
	// hardware is the machine's first name, by which stories name it.
	hardware string
	boot     int
	have     *plan.State
	target   *target
	agent    *node.Steps
	process  *process
	client   *client
	// announced is the hardware address that the agent announces an address with.
	announced map[netip.Addr]string
	renewed   time.Time                // when the agent last renewed the lease of OVN's answers
	received  map[netip.Addr]time.Time // when another node was last heard to have an address
	// attachments are the pods' ports, which OVS' database keeps, by their names: a pod may be there while one of the
	// same name goes.
	attachments map[string]*world.Attachment

	downs, cuts, isolated int              // faults under way
	apart                 map[*machine]int // the same: nodes that this one does not receive
	off                   bool             // without power
	former                *egretv1.EgressNode
	stalled               time.Time            // until when its OVN stands still
	deaf                  time.Time            // until when its agent cannot listen for questions
	failing               map[string]time.Time // until when a part of its targets cannot be written
	lease                 probe.Lease          // as an agent left it
	renewedBy             *process             // that agent
	clockSet              time.Duration        // by how much its date is another than it should
}

func (s *Sim) addMachine(i int) {
	m := &machine{s: s, name: fmt.Sprint("n", i), hardware: fmt.Sprint("n", i), failing: map[string]time.Time{},
		apart: map[*machine]int{}}
	s.machines[m.name], s.all = m, append(s.all, m)
	m.join(map[string]string{"machine": m.name})
	s.every(leaseLasts/4, func() { m.renewLease() })
	s.every(announceEvery, func() { m.announceAll() })
}

// machine returns the one that stories name so.
func (s *Sim) machine(hardware string) *machine {
	for _, m := range s.all {
		if m.hardware == hardware {
			return m
		}
	}
	panic("no machine " + hardware)
}

// hasNode reports whether the machine's Node exists.
func (m *machine) hasNode() bool { return m.s.machines[m.name] == m }

// join creates the machine's Node and boots.
func (m *machine) join(labels map[string]string) {
	o := &corev1.Node{}
	o.Name, o.Labels = m.name, labels
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, ip := range compiletest.Host(m.hardware).Primary {
		o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP,
			Address: ip.Addr().String()})
	}
	m.s.api.put("nodes", o)
	m.bootUp()
}

func (m *machine) bootID() string { return fmt.Sprintf("%s-boot-%d", m.name, m.boot) }

// bootUp is a boot: the agent empties the logical network before anything else. Pods are gone.
func (m *machine) bootUp() {
	m.stopAgent()
	m.boot, m.downs = m.boot+1, 0
	m.have, m.attachments, m.received = plan.New(), map[string]*world.Attachment{}, map[netip.Addr]time.Time{}
	m.target = &target{s: m.s, m: m, north: plan.New()}
	if o := get[*corev1.Node](m.s.api, "nodes", m.name); o != nil {
		o.Status.NodeInfo.BootID = m.bootID()
		m.s.api.put("nodes", o)
	}
	m.startAgent()
}

func (m *machine) startAgent() {
	if m.agent != nil {
		return
	}
	m.process, m.announced = &process{s: m.s, on: m, alive: true}, map[netip.Addr]string{}
	var attachments []*world.Attachment
	for _, key := range slices.Sorted(maps.Keys(m.attachments)) {
		attachments = append(attachments, m.attachments[key])
	}
	m.agent = node.NewSteps(node.Surroundings{
		Node: m.name, BootID: m.bootID(), Config: m.s.config, Host: compiletest.Host(m.hardware), Held: m.have,
		Attachments: attachments, Target: m.target, Early: early{m.target}, Confirmed: m.target.confirmed,
		SetPaused: m.setPaused,
		API:       view{m}, Now: m.process.now, Latency: m.s.within(m.s.pace.Write, m.name+" reports"),
		Started: m.started, Ask: m.ask, Announce: m.announce, Probe: m.probe,
		Renew: func() { m.renewed = m.s.now },
	})
	m.process.step = m.agent.Step
	m.client = m.s.api.follow("agent of "+m.name, m.process, m.agent.Source(),
		kube.FollowedBy(m.name, all.ServedKinds().AllResources()...))
	m.agent.Tunnels(m.sessions())
	m.reach()
	m.process.wake()
}

// stopAgent is kill -9.
func (m *machine) stopAgent() {
	if m.agent != nil {
		m.process.alive, m.agent = false, nil
		m.client.end()
	}
}

func (m *machine) sessions() (out []tunnel.Session) {
	for _, name := range slices.Sorted(maps.Keys(m.s.machines)) {
		if name != m.name {
			out = append(out, tunnel.Session{Node: name, WasUp: true, Up: m.receives(m.s.machines[name])})
		}
	}
	return out
}

// renewLease does as agents do: a Lease that is not as this process left it says that history is another one.
func (m *machine) renewLease() {
	if !m.process.reaches() {
		return
	}
	if m.renewedBy == m.process && m.s.api.leases[m.name] != m.lease {
		m.agent.Source().ListAgain()
	}
	m.lease, m.renewedBy = probe.Lease{Version: fmt.Sprint(m.s.now), Lasts: leaseLasts}, m.process
	m.s.api.leases[m.name] = m.lease
}

func (m *machine) setPaused(hostIface string, paused bool) {
	if at := m.attachments[hostIface]; at != nil {
		changed := *at
		changed.EgressPaused = paused
		m.attachments[hostIface] = &changed
	}
}

// view is the API server as an agent meets it.
type view struct{ *machine }

// Report stores the agent's EgressNode.
func (v view) Report(o *egretv1.EgressNode) (*egretv1.EgressNode, error) {
	if !v.process.reaches() {
		return nil, errOutOfReach
	}
	if old := get[*egretv1.EgressNode](v.s.api, "egressnodes", o.Name); old != nil {
		old.OwnerReferences, old.Status = o.OwnerReferences, o.Status
		o = old
	}
	return v.s.api.put("egressnodes", o).(*egretv1.EgressNode), nil
}

// Annotate merges annotations into the agent's Node.
func (v view) Annotate(annotations map[string]string) (*corev1.Node, error) {
	n := get[*corev1.Node](v.s.api, "nodes", v.name)
	if !v.process.reaches() || n == nil {
		return nil, errOutOfReach
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	maps.Copy(n.Annotations, kube.MergeNetworks(n.Annotations, annotations))
	return v.s.api.put("nodes", n).(*corev1.Node), nil
}

// EgressIP reads one.
func (v view) EgressIP(name string) (*v1.EgressIP, error) {
	if !v.process.reaches() {
		return nil, errOutOfReach
	}
	return v.s.api.egressIP(name), nil
}

// CatchUp reads what a starting pod's node asks for.
func (v view) CatchUp(namespace string, source *kube.Source) error {
	if !v.process.reaches() {
		return errOutOfReach
	}
	all := []string{"namespaces", "egressips", "egressiptraffics", "egressservices"}
	if len(v.s.api.objects["egressservices"]) > 0 {
		all = append(all, "services")
	}
	for _, plural := range all {
		kind := v.s.api.kinds[plural]
		list, within := &metav1.PartialObjectMetadataList{}, ""
		if plural == "egressservices" || plural == "services" {
			within = namespace
		}
		list.ResourceVersion = strconv.Itoa(v.s.api.version)
		if err := source.BeginRead(kind, "")(list.ResourceVersion); err != nil {
			return err
		}
		var objects []object
		for _, o := range v.s.api.list(kind) {
			x := o.(object)
			if cmp.Or(x.GetNamespace(), namespace) != namespace || plural == "namespaces" && x.GetName() != namespace {
				continue
			}
			objects = append(objects, x)
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: x.GetNamespace(), Name: x.GetName(), ResourceVersion: x.GetResourceVersion()}})
		}
		if err := v.observe(source, kind, within, list); err != nil {
			return err
		}
		for _, o := range objects {
			must(source.Observe(o))
		}
	}
	return nil
}

// observe takes in which objects a list shows to be gone. Of namespaces one object is read, not a list.
func (v view) observe(
	source *kube.Source, kind kube.Kind, within string, list *metav1.PartialObjectMetadataList,
) error {
	if watchName(kind) != "namespaces" {
		_, err := source.ObserveList(kind, within, list)
		return err
	}
	for _, m := range list.Items {
		if err := source.BeginRead(kind, m.Name)(m.ResourceVersion); err != nil {
			return err
		}
	}
	return nil
}

// Silence is for how long nothing was received.
func (v view) Silence() time.Duration { return v.client.silence() }

// target is what a node's targets are: the host's rules and the bridge's flows change at once, the Northbound takes
// effect later.
type target struct {
	s       *Sim
	m       *machine
	north   *plan.State
	pending bool
	since   time.Time

	state                *plan.State // that was wanted last
	grown, wrote, shrunk plan.Moment // of it
	written              bool        // it has been compared with what is there
}

var _ plane.Plane = &target{}

// hold is ovn.Options.Hold.
const hold = 2 * time.Second

// Name is that of the plane.
func (t *target) Name() string { return "target" }

// Forget does nothing: the target is always read.
func (t *target) Forget() {}

func (t *target) confirmed() bool { return !t.pending }

// Grow adds and changes rows, and replaces the Northbound's.
func (t *target) Grow(_ context.Context, want *plan.State) error {
	if t.state != want {
		t.state, t.grown, t.wrote, t.shrunk, t.written = want, plan.Moment{}, plan.Moment{}, plan.Moment{}, false
	}
	if t.fails(hostPart) {
		return errNotWritten
	}
	if want.ChangedSince(t.grown)&onHost != 0 {
		flows, _ := compiletest.FlowSteps(t.m.have, want)
		host, _ := compiletest.HostSteps(t.m.have, want)
		compiletest.PutAll(t.m.have.Addrs, compiletest.Rows(want.Addrs))
		t.does(append(host, flows...))
		t.grown = want.Now()
	}
	if t.pending && t.s.now.Sub(t.since) < hold {
		return plane.ErrUnconfirmed
	}
	if !t.written || want.ChangedSince(t.wrote)&(plan.InNB|plan.InSetElems) != 0 {
		if t.fails(northPart) {
			return errNotWritten
		}
		if t.wrote, t.written = want.Now(), true; t.differs(want) {
			t.write(want)
		}
	}
	if t.pending {
		return plane.ErrUnconfirmed
	}
	t.m.announceNew(want)
	return nil
}

// early is the bridge's flows and released addresses, which follow from local facts before the cluster is known.
type early struct{ *target }

// Grow adds and changes flows, and removes released addresses.
func (t early) Grow(_ context.Context, want *plan.State) error {
	if t.fails(hostPart) {
		return errNotWritten
	}
	flows, _ := compiletest.FlowSteps(t.m.have, want)
	for a := range t.m.have.Addrs.Rows() {
		if _, released := want.ReleasedAddrs.Get(a.Prefix.Addr()); released {
			t.m.have.Addrs.Drop(plan.Owner{}, a)
		}
	}
	t.does(flows)
	return nil
}

func (t *target) differs(want *plan.State) bool {
	rows := plan.Diff(compiletest.Rows(t.north.NB), want.NB, plan.EqualRows)
	elems := plan.Diff(compiletest.Rows(t.north.SetElems), want.SetElems, plan.Same)
	return len(rows.Put)+len(rows.Del)+len(elems.Put)+len(elems.Del) > 0
}

// write is a transaction. OVN carries it out later, whether or not the agent lives by then.
func (t *target) write(want *plan.State) {
	t.north = plan.New()
	compiletest.PutAll(t.north.NB, compiletest.Rows(want.NB))
	compiletest.PutAll(t.north.SetElems, compiletest.Rows(want.SetElems))
	north := t.north
	t.pending, t.since = true, t.s.now
	t.s.after(t.s.within(t.s.pace.OVN, "OVN of "+t.m.name), func() { t.takesEffect(north) })
}

func (t *target) takesEffect(north *plan.State) {
	if t.north != north || t.m.target != t {
		return // a later one does, or the machine has booted
	}
	if t.s.now.Before(t.m.stalled) {
		t.s.at(t.m.stalled, func() { t.takesEffect(north) })
		return
	}
	t.m.have.NB, t.m.have.SetElems, t.pending = north.NB, north.SetElems, false
	t.s.verdict.changed(t.m)
	t.s.verdict.noteTranslations(t.m)
	if t.m.agent != nil {
		t.m.agent.Confirmed()
		t.m.process.wake()
	}
}

// Shrink removes what is not wanted; the Northbound has none of that.
func (t *target) Shrink(_ context.Context, want *plan.State) error {
	t.m.dropAnnounced(want)
	if t.fails(hostPart) {
		return errNotWritten
	}
	if want.ChangedSince(t.shrunk)&onHost != 0 {
		_, flows := compiletest.FlowSteps(t.m.have, want)
		_, host := compiletest.HostSteps(t.m.have, want)
		for a := range plan.Diff(compiletest.Rows(t.m.have.Addrs), want.Addrs, plan.Same).Del {
			t.m.have.Addrs.Drop(plan.Owner{}, a)
		}
		t.does(append(flows, host...))
		t.shrunk = want.Now()
	}
	return nil
}

// The parts of a node's targets that can fail: the host's rules with the bridge's flows, and the Northbound.
const hostPart, northPart = "host", "north"

var errNotWritten = errors.New("cannot be written")

func (t *target) fails(part string) bool { return t.s.now.Before(t.m.failing[part]) }

// onHost are the tables of a plan that are not OVN's.
const onHost = ^(plan.InNB | plan.InSetElems | plan.InSB)

func (t *target) does(steps []func()) {
	for _, do := range steps {
		do()
	}
	t.s.verdict.changed(t.m)
	t.s.verdict.noteTranslations(t.m)
}

// assignable labels a node as one that hosts egress IPs, or takes the label away.
func (m *machine) assignable(is bool) {
	o := get[*corev1.Node](m.s.api, "nodes", m.name)
	if o == nil {
		return
	}
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	delete(o.Labels, "k8s.ovn.org/egress-assignable")
	if is {
		o.Labels["k8s.ovn.org/egress-assignable"] = ""
	}
	m.s.api.put("nodes", o)
}
