package egressservice_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// cluster is three nodes with pods ns0/p0 on n1 and ns0/p3 on n2, both behind Service ns0/s0, which has EgressService
// ns0/s0.
type cluster struct {
	*term
	t   *testing.T
	now time.Time
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{term: newTerm(false), t: t, now: time.Unix(100_000, 0)}
	for _, p := range pods() {
		c.set(func(w *world.World) { w.SetPod(p) })
	}
	c.service(func(*world.Service) {})
	c.object(func(*world.EgressService) {})
	return c
}

func pods() []*world.Pod {
	out := []*world.Pod{compiletest.Pod(0, "n1"), compiletest.Pod(3, "n2")}
	for _, p := range out {
		p.Running = true
	}
	return out
}

func (c *cluster) set(change func(*world.World)) { c.change(change, c.now) }

// service makes ns0/s0 anew, object its EgressService, as it is shown; node one of the nodes.
func (c *cluster) service(edit func(*world.Service)) {
	s := compiletest.LoadBalancer(0, pods()...)
	edit(s)
	c.set(func(w *world.World) { w.SetService(s) })
}

func (c *cluster) object(edit func(*world.EgressService)) {
	s := compiletest.EgressService(0)
	if shown := c.w.EgressService(s.Key()); shown != nil {
		*s = *shown
	}
	edit(s)
	c.set(func(w *world.World) { w.SetEgressService(s) })
}

func (c *cluster) node(i int, edit func(*world.Node)) {
	n := named(compiletest.Node(i))
	n.Labels = c.w.Said(n.Name).Labels
	edit(n)
	c.set(func(w *world.World) { w.SetNode(n) })
}

// green selects nodes by their color.
func green() world.NodeSelector {
	return world.NodeSelector{Labels: labels.SelectorFromSet(labels.Set{"color": "green"})}
}

// decides is one decision, written. It returns the reasons of the Events.
func (c *cluster) decides() string {
	told, _ := c.round(c.now)
	c.set(func(w *world.World) { show(w, "") })
	c.now = c.now.Add(time.Second)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(told)) {
		for _, e := range told[key] {
			out = append(out, e.Reason)
		}
	}
	return strings.Join(out, " ")
}

// later is a decision after a node that was named for an address, and did not say that it holds it, can have it still.
func (c *cluster) later() {
	c.decides()
	c.now = c.now.Add(10 * time.Second)
	c.decides()
}

// report has nodes do what the status says: hold, and lead their pods to the host, or drop what these send.
func (c *cluster) report(nodes ...string) {
	for _, node := range nodes {
		h := &world.Holding{Node: node, BootID: "boot-" + node, Holds: map[string][]netip.Addr{},
			Steers: map[string][]world.Assignment{}}
		for _, key := range c.w.EgressServices() {
			s := c.w.EgressService(key)
			steer(h, s)
			for _, f := range [...]world.Family{world.V4, world.V6} {
				if c.w.EgressServiceBinds(key, f) && !s.HasItems(f) && s.Host != world.HostAll {
					h.Steers[key] = append(h.Steers[key], world.Assignment{IP: f.Unspecified()})
				}
			}
			for _, ip := range slices.Concat(compiletest.EgressAddr(20), compiletest.EgressAddr(23)) {
				if s.Names(node, ip) {
					h.Holds[key] = append(h.Holds[key], ip)
					h.SayHeld(key, ip, s.Since(world.Assignment{Node: node, IP: ip}))
				}
			}
		}
		c.set(func(w *world.World) { w.SetHolding(h) })
	}
}

// steer has a report say that its node leads pods to where an EgressService says.
func steer(h *world.Holding, s *world.EgressService) {
	to, given := s.Items, s.Items
	if s.Host == world.HostAll {
		to, given = nil, nil
		for _, ip := range []netip.Addr{world.V4.Unspecified(), world.V6.Unspecified()} {
			to = append(to, world.Assignment{Node: h.Node, IP: ip})
			given = append(given, world.Assignment{Node: world.HostAll, IP: ip})
		}
	}
	h.Steers[s.Key()] = to
	for i := range to {
		h.SaySteers(s.Key(), to[i], s.Since(given[i]))
	}
}

// is compares what ns0/s0 says: its host, who leaves, who has the label, and the conditions Ready and its reason.
func (c *cluster) is(want string) {
	c.t.Helper()
	s := c.w.EgressService("ns0/s0")
	var leaving, labelled []string
	for _, l := range s.Leaving {
		leaving = append(leaving, l.Node)
	}
	for _, name := range c.w.Nodes() {
		if _, is := c.w.Said(name).Labels[egressservice.LabelPrefix+"ns0-s0"]; is {
			labelled = append(labelled, name)
		}
	}
	ready := decide.Condition(s.Conditions, egressservice.ConditionReady)
	have := fmt.Sprintf("%q leaving %v label %v Ready=%s %s", s.Host, slices.Compact(leaving), labelled, ready.Status,
		ready.Reason)
	if have != want {
		c.t.Errorf("have %s\nwant %s\n%s", have, want, ready.Message)
	}
}

// settled is a cluster whose host is n1, ready.
func settled(t *testing.T) *cluster {
	c := newCluster(t)
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	return c
}

// TestRefusals: what keeps an EgressService from being configured is a condition and one Event, nothing else is
// configured, and it heals by itself.
func TestRefusals(t *testing.T) {
	for name, x := range map[string]struct {
		breaks func(*cluster)
		reason string
	}{
		"no Service": {func(c *cluster) {
			c.set(func(w *world.World) { w.DelService("ns0/s0") })
		}, egressservice.ReasonNoService},
		"another network": {func(c *cluster) {
			c.set(func(w *world.World) { ownNetwork(w, true) })
		}, egressservice.ReasonNetworkUnsupported},
		"another type": {func(c *cluster) {
			c.service(func(s *world.Service) { s.LoadBalancer, s.LoadBalancerIPs = false, nil })
		}, egressservice.ReasonNotLoadBalancer},
		"no ingress IP": {func(c *cluster) {
			c.service(func(s *world.Service) { s.LoadBalancerIPs = nil })
		}, egressservice.ReasonNoIngressIP},
		"addresses of the cluster": {func(c *cluster) {
			c.service(func(s *world.Service) {
				s.LoadBalancerIPs = []netip.Addr{s.ClusterIPs[0], pods()[0].IPs[0], c.w.Config.Join(1, world.V4).Addr()}
			})
		}, egressservice.ReasonNoIngressIP},
		"no node matches": {func(c *cluster) {
			c.object(func(s *world.EgressService) { s.Nodes = green() })
		}, egressservice.ReasonNoMatchingNode},
		"no node with an endpoint": {func(c *cluster) {
			c.service(func(s *world.Service) {
				s.ExternalLocal = true
				for i := range s.Ports[0].Endpoints {
					s.Ports[0].Endpoints[i].Node = "gone"
				}
			})
		}, egressservice.ReasonNoMatchingNode},
		"unreadable": {func(c *cluster) {
			c.object(func(s *world.EgressService) { s.Problems = []string{"spec.network: no"} })
		}, egressservice.ReasonInvalidSpec},
	} {
		t.Run(name, func(t *testing.T) {
			c := settled(t)
			x.breaks(c)
			events := c.decides()
			c.is(`"" leaving [] label [] Ready=False ` + x.reason)
			if want := "Released " + x.reason + " FellBack"; events != want {
				t.Errorf("told of %q, want %q", events, want)
			}
			if again := c.decides(); again != "" {
				t.Errorf("told again of %q", again)
			}
			c.set(func(w *world.World) { ownNetwork(w, false) })
			c.service(func(*world.Service) {})
			c.object(func(s *world.EgressService) { s.Nodes, s.Problems = world.NodeSelector{}, nil })
			c.decides()
			c.report("n1", "n2", "n3")
			c.decides()
			c.is(`"n1" leaving [] label [n1] Ready=True Held`)
		})
	}
}

// ownNetwork says whether the namespace asks for a network of its own.
func ownNetwork(w *world.World, own bool) {
	n := world.Namespace{Name: "ns0"}
	if has := w.Namespace(n.Name); has != nil {
		n = *has
	}
	n.OwnNetwork = own
	w.SetNamespace(&n)
}

// TestHostWithoutEndpoints: while no pod is behind the Service, or none is ready, the host stays and one is chosen, so
// that the first pod has its source; that there is none is said.
func TestHostWithoutEndpoints(t *testing.T) {
	unready := func(s *world.Service) {
		for i := range s.Ports[0].Endpoints {
			s.Ports[0].Endpoints[i].Ready = false
		}
	}
	for name, x := range map[string]struct {
		edit   func(*world.Service)
		reason string
	}{
		"none": {func(s *world.Service) { s.Ports[0].Endpoints = nil }, "False NoEndpoints"},
		"host-networked": {func(s *world.Service) {
			s.Ports[0].Endpoints = []world.Endpoint{{AddrPort: netip.AddrPortFrom(compiletest.Primary(1), 80)}}
		}, "False HostNetworkEndpoints"},
		"none ready": {unready, "True Held"},
	} {
		for _, local := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", local ", local), func(t *testing.T) {
				edit := func(s *world.Service) { s.ExternalLocal = local; x.edit(s) }
				c := settled(t)
				c.service(edit)
				_, event, _ := strings.Cut(strings.TrimPrefix(x.reason, "True Held"), " ")
				if told := c.decides(); told != event {
					t.Errorf("told of %q", told)
				}
				want := `"n1" leaving [] label [n1] Ready=` + x.reason
				c.is(want)
				c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
				c.decides()
				c.set(func(w *world.World) { w.SetEgressService(compiletest.EgressService(0)) })
				c.decides()
				c.report("n1", "n2", "n3")
				c.decides()
				c.is(want)
				if !c.w.EgressServiceBinds("ns0/s0", world.V4) {
					t.Error("the first pod's packets are not bound")
				}
				c.service(func(*world.Service) {})
				c.decides()
				c.is(`"n1" leaving [] label [n1] Ready=True Held`)
			})
		}
	}
}

// add is one EgressService more, with its Service, which has an address of its own; the greater its age, the older.
func (c *cluster) add(namespace, name string, age int) *world.EgressService {
	s := compiletest.EgressService(0)
	s.Namespace, s.Name, s.UID, s.Created = namespace, name, namespace+name, time.Unix(int64(5000-age), 0)
	service := compiletest.LoadBalancer(0, pods()...)
	service.Namespace, service.Name, service.LoadBalancerIPs = namespace, name, compiletest.EgressAddr(30+age)
	c.set(func(w *world.World) {
		w.SetEgressService(s)
		w.SetService(service)
	})
	return s
}

// assigned is the host of an EgressService, and the reason of condition Assigned.
func (c *cluster) assigned(key string) string {
	s := c.w.EgressService(key)
	return s.Host + " " + decide.Condition(s.Conditions, egressservice.ConditionAssigned).Reason
}

// TestLabels: of two that need the same label the one that has it keeps it, else the older one has it; a name that is
// too long for a label has none.
func TestLabels(t *testing.T) {
	c := newCluster(t)
	is := func(key, want, when string) {
		t.Helper()
		if have := c.assigned(key); !strings.HasSuffix(have, want) || (want == " Assigned") != (have[0] == 'n') {
			t.Errorf("%s: %s: %s", when, key, have)
		}
	}
	c.add("a", "b-c", 1)
	c.decides()
	is("a/b-c", " Assigned", "alone")
	c.add("a-b", "c", 2)
	c.add("long", strings.Repeat("x", 60), 3)
	c.decides()
	is("a/b-c", " Assigned", "an older one comes")
	is("a-b/c", " LabelAmbiguous", "it is older, and came later")
	is("long/"+strings.Repeat("x", 60), " LabelTooLong", "too long")
	c.set(func(w *world.World) { w.DelService("a/b-c") })
	c.decides()
	c.decides()
	is("a-b/c", " Assigned", "the other has no Service")
	c.add("a", "b-c", 1)
	c.decides()
	is("a/b-c", " LabelAmbiguous", "it has its Service back")
	c.set(func(w *world.World) { w.DelEgressService("a-b/c") })
	c.decides()
	is("a/b-c", " Assigned", "the other is gone")
}

// TestMoves: what takes the host away has it move at once where it cannot go on, and make before break where it can.
func TestMoves(t *testing.T) {
	unplanned, planned := `"n2" leaving [] label [n2] Ready=False WaitingForNode`,
		`"n2" leaving [n1] label [n1] Ready=False WaitingForNode`
	for name, x := range map[string]struct {
		breaks func(*cluster)
		is     string
	}{
		"unreachable": {func(c *cluster) {
			c.set(func(w *world.World) { w.SetUnreachable("n1", world.NodeUnreachable) })
		}, unplanned},
		"deleted": {func(c *cluster) {
			c.set(func(w *world.World) { w.DelNode("n1") })
		}, unplanned},
		"cordoned": {func(c *cluster) { c.node(1, func(n *world.Node) { n.Cordoned = true }) }, planned},
		"not ready": {func(c *cluster) { c.node(1, func(n *world.Node) { n.Ready = false }) },
			`"n2" leaving [n1] label [n2] Ready=False WaitingForNode`},
		"no longer selected": {func(c *cluster) {
			c.node(2, func(n *world.Node) { n.Labels = map[string]string{"color": "green"} })
			c.object(func(s *world.EgressService) { s.Nodes = green() })
		}, planned},
		"no endpoint there": {func(c *cluster) {
			c.service(func(s *world.Service) {
				s.ExternalLocal, s.Ports[0].Endpoints = true, s.Ports[0].Endpoints[2:]
			})
		}, planned},
	} {
		t.Run(name, func(t *testing.T) {
			c := settled(t)
			x.breaks(c)
			if told := c.decides(); told != "Moved" {
				t.Errorf("told of %q", told)
			}
			c.is(x.is)
			c.report("n2", "n3") // n1 goes on as it was
			if c.w.Node("n1") != nil {
				c.report("n1")
			}
			c.decides()
			c.decides() // what was left is let go of
			c.is(`"n2" leaving [] label [n2] Ready=True Held`)
		})
	}
}

// TestLostHostIsKept: a host that was lost only now stays the host where no other node can be it, for it may be back at
// once.
func TestLostHostIsKept(t *testing.T) {
	c := settled(t)
	c.node(1, func(n *world.Node) { n.Labels = map[string]string{"color": "green"} })
	c.object(func(s *world.EgressService) { s.Nodes = green() })
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	c.set(func(w *world.World) {
		w.SetUnreachable("n1", world.NodeUnreachable)
		w.SetNotAnswering("n1", true)
	})
	if told := c.decides(); told != "" {
		t.Errorf("told of %q", told)
	}
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
	c.set(func(w *world.World) { w.SetNotAnswering("n1", false) })
	if told := c.decides(); told != "Released NoMatchingNode FellBack" {
		t.Errorf("told of %q", told)
	}
	c.is(`"" leaving [] label [] Ready=False NoMatchingNode`)
}

// TestLabelFollowsTheHolder: while the successor is not ready the label stays with who translates, and goes with it.
func TestLabelFollowsTheHolder(t *testing.T) {
	c := settled(t)
	c.node(1, func(n *world.Node) { n.Cordoned = true })
	c.decides()
	c.is(`"n2" leaving [n1] label [n1] Ready=False WaitingForNode`)
	c.report("n2")
	c.decides()
	c.is(`"n2" leaving [n1] label [n2] Ready=False WaitingForNode`) // n1's pods are still led to n1
	c.set(func(w *world.World) { w.SetUnreachable("n2", world.NodeUnreachable) })
	c.decides()
	c.is(`"n3" leaving [n1] label [n1] Ready=False WaitingForNode`)
}

// TestBindsFromNetworkToHost: pods whose packets left by their nodes' network or not at all do not get their node's
// address until the host that is chosen then is ready.
func TestBindsFromNetworkToHost(t *testing.T) {
	c := settled(t)
	c.object(func(s *world.EgressService) { s.SourceIPBy, s.Table.Name = world.SourceNetwork, "blue" })
	c.decides()
	if s := c.w.EgressService("ns0/s0"); s.Host != world.HostAll {
		t.Fatalf("the host is %q", s.Host)
	}
	c.object(func(s *world.EgressService) {
		s.SourceIPBy, s.Table = world.SourceLoadBalancerIP, world.RoutingTable{}
	})
	c.decides()
	s := c.w.EgressService("ns0/s0")
	if s.Host == world.HostAll || !s.InForce[world.V4] || s.InForce[world.V6] != s.HasItems(world.V6) {
		t.Errorf("host %q, in force %v", s.Host, s.InForce)
	}
}

// TestSticky: nothing moves because a node comes back, or has fewer.
func TestSticky(t *testing.T) {
	c := settled(t)
	c.set(func(w *world.World) { w.SetUnreachable("n1", world.NodeUnreachable) })
	c.decides()
	c.report("n2", "n3")
	c.set(func(w *world.World) { w.SetUnreachable("n1", "") })
	if told := c.decides(); told != "" {
		t.Errorf("told of %q", told)
	}
	c.report("n1")
	c.decides()
	c.is(`"n2" leaving [] label [n2] Ready=True Held`)
}

// TestAgentAway: a host whose agent is away stays where there is no other, and goes where there is.
func TestAgentAway(t *testing.T) {
	c := settled(t)
	c.set(func(w *world.World) {
		w.SetUnreachable("n1", world.AgentAway)
		w.SetUnreachable("n2", world.NodeUnreachable)
		w.SetUnreachable("n3", world.NodeUnreachable)
	})
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=False AgentAway`)
	c.set(func(w *world.World) { w.SetUnreachable("n3", "") })
	c.decides()
	c.is(`"n3" leaving [n1] label [n1] Ready=False WaitingForNode`)
}

// TestSpread: each goes to the node with the fewest, and all have one when nodes are gone.
func TestSpread(t *testing.T) {
	c := newCluster(t)
	for i := 3; i <= 15; i += 3 {
		s, service := compiletest.EgressService(i), compiletest.LoadBalancer(i, pods()...)
		c.set(func(w *world.World) {
			w.SetEgressService(s)
			w.SetService(service)
		})
	}
	c.decides()
	if have := c.hosts(); have != "n1 n2 n3 n1 n2 n3" {
		t.Errorf("have %s", have)
	}
	c.set(func(w *world.World) { w.SetUnreachable("n1", world.NodeUnreachable) })
	c.decides()
	if have := c.hosts(); have != "n2 n2 n3 n3 n2 n3" {
		t.Errorf("n1 is gone: have %s", have)
	}
}

// hosts are those of all EgressServices by age.
func (c *cluster) hosts() string {
	var all []*world.EgressService
	for _, key := range c.w.EgressServices() {
		all = append(all, c.w.EgressService(key))
	}
	slices.SortFunc(all, (*world.EgressService).ByAge)
	var out []string
	for _, s := range all {
		out = append(out, s.Host)
	}
	return strings.Join(out, " ")
}

// TestNetwork: with sourceIPBy Network each node is the host, no node has a label, and the selector has no meaning.
// What a node says of the network is the reason.
func TestNetwork(t *testing.T) {
	c := settled(t)
	c.object(func(s *world.EgressService) {
		s.SourceIPBy, s.Table.Name = world.SourceNetwork, "blue"
		s.Nodes = green()
	})
	c.decides()
	c.is(`"ALL" leaving [] label [] Ready=False WaitingForNode`)
	c.report("n1", "n2")
	c.decides()
	c.is(`"ALL" leaving [] label [] Ready=True Held`)
	h := *c.w.Holding("n2")
	h.Problems, h.Reasons = map[string]string{"ns0/s0": "there is no table blue"},
		map[string]string{"ns0/s0": world.ReasonUnknownNetwork}
	c.set(func(w *world.World) { w.SetHolding(&h) })
	if told := c.decides(); told != "UnknownNetwork" {
		t.Errorf("told of %q", told)
	}
	c.is(`"ALL" leaving [] label [] Ready=False UnknownNetwork`)
	c.service(func(s *world.Service) { s.Ports[0].Endpoints = nil })
	c.decides()
	c.is(`"ALL" leaving [] label [] Ready=False NoEndpoints`)
	c.service(func(*world.Service) {})
	c.report("n2")
	c.decides()
	c.is(`"ALL" leaving [] label [] Ready=True Held`)
	c.object(func(s *world.EgressService) { s.SourceIPBy, s.Nodes = world.SourceLoadBalancerIP, world.NodeSelector{} })
	c.decides()
	c.report("n1", "n2", "n3")
	c.decides()
	c.is(`"n1" leaving [] label [n1] Ready=True Held`)
}

// TestNetworkWaitsForNodes: which nodes lead pods to their own networks is known when it is decided that they are to.
// The decision itself does not say that it is so.
func TestNetworkWaitsForNodes(t *testing.T) {
	c := newCluster(t)
	c.object(func(s *world.EgressService) { s.SourceIPBy = world.SourceNetwork })
	for range 2 {
		c.decides()
		c.is(`"ALL" leaving [] label [] Ready=False WaitingForNode`)
	}
	c.report("n1", "n2")
	c.decides()
	c.is(`"ALL" leaving [] label [] Ready=True Held`)
}

// TestSources: of several ingress IPs of a family the first is the source, and stays it while the Service has it.
func TestSources(t *testing.T) {
	c := newCluster(t)
	first, second := compiletest.EgressAddr(20)[0], compiletest.EgressAddr(21)[0]
	c.service(func(s *world.Service) { s.LoadBalancerIPs = []netip.Addr{first, second} })
	c.decides()
	c.service(func(s *world.Service) { s.LoadBalancerIPs = []netip.Addr{second, first} })
	c.decides()
	s := c.w.EgressService("ns0/s0")
	assigned := decide.Condition(s.Conditions, egressservice.ConditionAssigned).Message
	if len(s.Items) != 1 || s.Items[0].IP != first || !strings.Contains(assigned, "no source: "+second.String()) {
		t.Errorf("have %v, %s", s.Items, assigned)
	}
	c.service(func(s *world.Service) { s.LoadBalancerIPs = []netip.Addr{second} })
	c.decides()
	if s := c.w.EgressService("ns0/s0"); s.Items[0].IP != second || len(s.Leaving) > 0 {
		t.Errorf("the first is gone: have %+v", s.Placement)
	}
}

// TestOverlapped: of two that a pod is behind the older serves it, and the younger says so once.
func TestOverlapped(t *testing.T) {
	c := settled(t)
	younger, service := compiletest.EgressService(3), compiletest.LoadBalancer(3, pods()[0])
	c.set(func(w *world.World) {
		w.SetEgressService(younger)
		w.SetService(service)
	})
	c.decides()
	if told := c.decides(); told != egressservice.EventOverlap {
		t.Errorf("told of %q", told)
	}
	c.report("n1", "n2", "n3")
	c.decides()
	ready := func(key string) string { return c.says(key, egressservice.ConditionReady) }
	if have := ready("ns0/s3"); have != "False ServedByOther no pod leaves as this EgressService says: it stands by for "+
		"1 pod behind its Service, because others serve them: ns0/s0 (1)" {
		t.Errorf("the younger one: %s", have)
	}
	overlapped := func(key string) string {
		c := decide.Condition(c.w.EgressService(key).Conditions, egressservice.ConditionOverlapped)
		return c.Status + " " + c.Message
	}
	if have := overlapped("ns0/s3"); !strings.HasPrefix(have,
		"True stands by for 1 pod behind its Service, because others serve them: ns0/s0 (1)") {
		t.Errorf("the younger one: %s", have)
	}
	if have := overlapped("ns0/s0"); !strings.HasPrefix(have, "False") {
		t.Errorf("the older one: %s", have)
	}
	c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
	c.decides()
	c.decides()
	if have := overlapped("ns0/s3"); !strings.HasPrefix(have, "False") {
		t.Errorf("the older one is gone: %s", have)
	}
	if have := ready("ns0/s3"); !strings.HasPrefix(have, "True") {
		t.Errorf("the older one is gone: %s", have)
	}
}

// TestLabelsLeftOver: a new leader takes labels away that nobody has now, whatever had happened meanwhile, and leaves
// those of others alone.
func TestLabelsLeftOver(t *testing.T) {
	c := settled(t)
	c.set(func(w *world.World) { w.Undecide() })
	c.set(func(w *world.World) { w.DelEgressService("ns0/s0") })
	c.node(2, func(n *world.Node) {
		n.Labels = map[string]string{egressservice.LabelPrefix + "gone-gone": "", "color": "green"}
	})
	c.decider = egressservice.NewDecider(handover.NewPods())
	c.decides()
	for _, name := range []string{"n1", "n2"} {
		for key := range c.w.Said(name).Labels {
			if strings.HasPrefix(key, egressservice.LabelPrefix) {
				t.Errorf("%s still has %s", name, key)
			}
		}
	}
	if c.w.Said("n2").Labels["color"] != "green" {
		t.Error("a label of others is gone")
	}
}
