package controller_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

func config() *world.Config {
	subnets, err := world.ParseClusterSubnets("10.244.0.0/16/24")
	if err != nil {
		panic(err)
	}
	return &world.Config{ClusterSubnets: subnets, JoinSubnets: world.DefaultJoinSubnets(),
		TransitSubnets: world.DefaultTransitSubnets()}
}

// start runs a controller that leads; stop ends its term.
func start(t *testing.T, a *api) (m *controller.Metrics, stop func()) {
	t.Helper()
	_, m, stop = startOne(t, a)
	return m, stop
}

func startOne(t *testing.T, a *api) (c *controller.Controller, m *controller.Metrics, stop func()) {
	t.Helper()
	m = controller.NewMetrics()
	c = controller.New(config(), all.ServedKinds(), a, a, m, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go a.run(ctx)
	go c.Run(ctx)
	term, stop := context.WithCancel(ctx)
	t.Cleanup(stop)
	c.Lead(term)
	return c, m, stop
}

// oneAssigned has a controller lead that has given EgressIP e with 172.18.0.33 to n1, of these nodes.
func oneAssigned(t *testing.T, delay time.Duration, nodes ...string) (a *api, c *controller.Controller,
	m *controller.Metrics, stop func()) {
	t.Helper()
	a = newAPI(delay)
	for i, n := range nodes {
		a.putNode(aNode(n, 2+i))
	}
	a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
	c, m, stop = startOne(t, a)
	eventually(t, "assignment", "n1=172.18.0.33", func() string { return a.assigned("e") })
	return a, c, m, stop
}

func TestFromNothingToReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(5 * time.Millisecond)
		a.putNode(aNode("n1", 2))
		a.putNode(aNode("n2", 3))
		start(t, a)
		eventually(t, "id of n1", "2", func() string { return a.annotation("n1", v1.AnnotationNodeID) })
		eventually(t, "subnet of n2", `{"default":["10.244.1.0/24"]}`,
			func() string { return a.annotation("n2", v1.AnnotationNodeSubnets) })
		eventually(t, "join of n2", `{"default":{"ipv4":"100.64.0.3/16"}}`,
			func() string { return a.annotation("n2", v1.AnnotationNodeGatewayRouterLRPIfaddrs) })
		eventually(t, "transit of n2", `{"ipv4":"100.88.0.3/16"}`,
			func() string { return a.annotation("n2", v1.AnnotationNodeTransitSwitchPortIfaddr) })

		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33", "172.18.0.44"))
		eventually(t, "assignment", "n1=172.18.0.33 n2=172.18.0.44", func() string { return a.assigned("e") })
		a.hold("n1", map[string][]string{"e": {"172.18.0.33"}})
		a.hold("n2", map[string][]string{"e": {"172.18.0.44"}})
		eventually(t, "Ready", "True", func() string { return string(a.condition("e", "Ready").Status) })
		if c := a.condition("e", "Ready"); c.ObservedGeneration != 1 || c.LastTransitionTime.IsZero() {
			t.Errorf("Ready: %+v", c)
		}
		eventually(t, "events", "Assigned Assigned", func() string { return a.reasons("e") })
		if n := a.written("egressips/e"); n > 3 { // assigned; in force with one holder; ready
			t.Errorf("%d writes of e", n)
		}
		if n := a.written("nodes/n1"); n != 2 { // its allocation; its record
			t.Errorf("%d writes of n1", n)
		}
	})
}

// A link heals: the annotation tells of its network before the node's report takes the fault back. The text of a fault
// is never out of date.
func TestLinkHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const network = "172.19.1.0/24"
		a := newAPI(time.Millisecond)
		healed := aNode("n1", 2)
		healed.Annotations[v1.AnnotationHostCIDRs] = `["172.18.0.2/16","172.19.1.2/24"]`
		a.putNode(aNode("n1", 2))
		a.fault("n1", network, "link eth1 is down")
		a.putEgressIP(anEgressIP("e", 0, "172.19.1.33"))
		start(t, a)
		says := func(text string) {
			t.Helper()
			eventually(t, "a condition with "+text, "true", func() string {
				return fmt.Sprint(strings.Contains(a.condition("e", "Assigned").Message, text))
			})
		}
		says("link eth1 is down")
		a.fault("n1", network, "link eth1 has no carrier")
		says("link eth1 has no carrier")
		a.putNode(healed)
		eventually(t, "subnet", `{"default":["10.244.0.0/24"]}`,
			func() string { return a.annotation("n1", v1.AnnotationNodeSubnets) })
		time.Sleep(200 * time.Millisecond) // what the annotation calls for is decided
		a.hold("n1", nil)
		eventually(t, "assignment", "n1=172.19.1.33", func() string { return a.assigned("e") })
	})
}

func TestMoveAndMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, m, _ := oneAssigned(t, time.Millisecond, "n1", "n2")
		a.deleteNode("n1")
		eventually(t, "assignment", "n2=172.18.0.33", func() string { return a.assigned("e") })
		eventually(t, "events", "Assigned Moved", func() string { return a.reasons("e") })
		want := `# HELP egret_controller_moves_total Egress IPs that left a node, by cause.
	# TYPE egret_controller_moves_total counter
	egret_controller_moves_total{cause="NodeDeleted"} 1
	`
		if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want),
			"egret_controller_moves_total"); err != nil {
			t.Error(err)
		}
	})
}

// A node that is Ready and does not answer hosts nothing; when it answers again, nothing moves back.
func TestUnreachableNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		a.putNode(aNode("n1", 2))
		a.putNode(aNode("n2", 3))
		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
		c, m, _ := startOne(t, a)
		eventually(t, "assignment", "n1=172.18.0.33", func() string { return a.assigned("e") })
		c.Found(t.Context(), probe.Change{Node: "n1", Why: world.NodeUnreachable})
		eventually(t, "assignment", "n2=172.18.0.33", func() string { return a.assigned("e") })
		c.Found(t.Context(), probe.Change{Node: "n1"})
		c.Found(t.Context(), probe.Change{Node: "n1", Why: world.AgentAway})
		eventually(t, "events", "Assigned Moved", func() string { return a.reasons("e") })
		want := `# HELP egret_controller_moves_total Egress IPs that left a node, by cause.
	# TYPE egret_controller_moves_total counter
	egret_controller_moves_total{cause="NodeUnreachable"} 1
	# HELP egret_controller_node_unreachable 1 for each node that is unreachable, by reason.
	# TYPE egret_controller_node_unreachable gauge
	egret_controller_node_unreachable{node="n1",reason="AgentAway"} 1
	# HELP ovnkube_clustermanager_egress_ips_node_unreachable_total The total number of times assigned egress IP(s) were unreachable.
	# TYPE ovnkube_clustermanager_egress_ips_node_unreachable_total counter
	ovnkube_clustermanager_egress_ips_node_unreachable_total 1
	`
		names := []string{"egret_controller_moves_total", "egret_controller_node_unreachable",
			"ovnkube_clustermanager_egress_ips_node_unreachable_total"}
		if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
		if have := a.assigned("e"); have != "n2=172.18.0.33" {
			t.Errorf("moved back: %s", have)
		}
	})
}

// Nodes of the world are probed: their management addresses are on loopback here, where nobody listens on port 9, and
// that is an answer.
func TestProbesNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		a.putNode(aNode("n2", 3))
		conf := config()
		conf.ClusterSubnets[0].CIDR, conf.ReachabilityTimeout = netip.MustParsePrefix("127.8.0.0/16"), time.Second
		m := controller.NewMetrics()
		c := controller.New(conf, all.ServedKinds(), a, a, m, slog.New(slog.DiscardHandler))
		p := c.Probe("n1", 0, probe.Files{}, nil)
		go a.run(t.Context())
		go c.Run(t.Context())
		go p.Run(t.Context())
		c.Lead(t.Context())
		eventually(t, "answers", "some", func() string {
			families, _ := m.Registry.Gather()
			for _, f := range families {
				// each one's first
				if f.GetName() == "egret_controller_probe_rtt_seconds" &&
					f.GetMetric()[0].GetHistogram().GetSampleCount() >= 2 {
					return "some"
				}
			}
			return "none"
		})
	})
}

func TestRefusalIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		a.putEgressIP(anEgressIP("bad", 2, "172.18.0.2"))
		a.putEgressIP(anEgressIP("good", 1, "172.18.0.33"))
		start(t, a)
		eventually(t, "assignment", "n1=172.18.0.33", func() string { return a.assigned("good") })
		eventually(t, "Assigned", "EgressIPConflict", func() string { return a.condition("bad", "Assigned").Reason })
		eventually(t, "events", "EgressIPConflict", func() string { return a.reasons("bad") })
	})
}

func TestGarbageNodeIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		n := aNode("n1", 2)
		n.Annotations[v1.AnnotationNodeID], n.Annotations[v1.AnnotationNodeSubnets] = "many", "{"
		a.putNode(n)
		start(t, a)
		eventually(t, "id", "2", func() string { return a.annotation("n1", v1.AnnotationNodeID) })
		eventually(t, "subnet", `{"default":["10.244.0.0/24"]}`,
			func() string { return a.annotation("n1", v1.AnnotationNodeSubnets) })
		eventually(t, "events", "NodeAllocation", func() string { return a.reasons("n1") })
	})
}

// TestKnownAllocationIsWrittenAgain: the controller writes what it knows of a node that somebody garbles, though its
// world has the same.
func TestKnownAllocationIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		start(t, a)
		for key, want := range map[string]string{v1.AnnotationNodeID: "2",
			v1.AnnotationNodeSubnets: `{"default":["10.244.0.0/24"]}`} {
			is := func() string { return a.annotation("n1", key) }
			eventually(t, key, want, is)
			a.mu.Lock()
			garbled := a.nodes["n1"].DeepCopy()
			a.mu.Unlock()
			garbled.Annotations[key] = "garbage"
			a.putNode(garbled)
			eventually(t, key+" garbled", want, is)
		}
		time.Sleep(time.Second)
		n := a.written("nodes/n1")
		time.Sleep(10 * time.Second)
		if again := a.written("nodes/n1"); again != n {
			t.Errorf("%d writes to the Node while nothing changes", again-n)
		}
	})
}

// TestOtherNetworksStay: an allocation keeps what a Node's annotations say of other networks.
func TestOtherNetworksStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		n := aNode("n1", 2)
		delete(n.Annotations, v1.AnnotationNodeID)
		n.Annotations[v1.AnnotationNodeSubnets] = `{"blue":["10.9.0.0/24"]}`
		n.Annotations[v1.AnnotationNodeGatewayRouterLRPIfaddrs] = `{"blue":{"ipv4":"100.65.0.2/16"}}`
		a.putNode(n)
		start(t, a)
		eventually(t, "subnets", `{"blue":["10.9.0.0/24"],"default":["10.244.0.0/24"]}`,
			func() string { return a.annotation("n1", v1.AnnotationNodeSubnets) })
		eventually(t, "join", `{"blue":{"ipv4":"100.65.0.2/16"},"default":{"ipv4":"100.64.0.2/16"}}`,
			func() string { return a.annotation("n1", v1.AnnotationNodeGatewayRouterLRPIfaddrs) })
	})
}

// A thousand EgressIPs at once are decided in one go, and each is written once.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		for i := range 20 {
			a.putNode(aNode(fmt.Sprintf("n%02d", i), i+2))
		}
		m, _ := start(t, a)
		eventually(t, "last node", "21", func() string { return a.annotation("n19", v1.AnnotationNodeID) })
		time.Sleep(50 * time.Millisecond) // nothing is left to be decided
		before := decisions(t, m)
		objects := make(chan struct{})
		a.changes <- func(w *world.World) { <-objects } // the loop is busy while they come
		for i := range 1000 {
			a.putEgressIP(anEgressIP(fmt.Sprintf("e%04d", i), 1000-i, fmt.Sprintf("172.18.%d.%d", 1+i/200, 1+i%200)))
		}
		for len(a.watch) > 0 {
			time.Sleep(time.Millisecond)
		}
		close(objects)
		eventually(t, "last EgressIP", "n19=172.18.5.200", func() string { return a.assigned("e0999") })
		eventually(t, "assignments", "1000", func() string {
			a.mu.Lock()
			defer a.mu.Unlock()
			return fmt.Sprint(len(a.writes) - 2*20) // two of each node: its allocation, its record
		})
		if n := decisions(t, m) - before; n > 2 { // the watch may hold one change back for a moment
			t.Errorf("%d decisions", n)
		}
	})
}

func decisions(t *testing.T, m *controller.Metrics) uint64 {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "egret_controller_decision_seconds" {
			return f.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	return 0
}

// One object's failed write is tried again, and holds up no other.
func TestFailedWriteHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		var broken atomic.Bool
		broken.Store(true)
		a.fail = func(object string) error {
			if object == "egressips/e" && broken.Load() {
				return errors.New("no")
			}
			return nil
		}
		a.putNode(aNode("n1", 2))
		a.putEgressIP(anEgressIP("e", 2, "172.18.0.33"))
		a.putEgressIP(anEgressIP("f", 1, "172.18.0.34"))
		m, _ := start(t, a)
		eventually(t, "the other", "n1=172.18.0.34", func() string { return a.assigned("f") })
		time.Sleep(100 * time.Millisecond)
		if a.reasons("e") != "" {
			t.Errorf("an Event tells of what is not written: %s", a.reasons("e"))
		}
		if n, err := testutil.GatherAndCount(m.Registry, "egret_controller_write_errors_total"); err != nil || n != 1 {
			t.Errorf("write errors: %d, %v", n, err)
		}
		broken.Store(false)
		eventually(t, "the broken one", "n1=172.18.0.33", func() string { return a.assigned("e") })
		eventually(t, "events", "Assigned", func() string { return a.reasons("e") })
	})
}

// The watch is far behind: what was decided must not be decided differently, though the API shows it late.
func TestLateWatchDoesNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(30 * time.Millisecond)
		a.putNode(aNode("n2", 3))
		start(t, a)
		eventually(t, "id", "2", func() string { return a.annotation("n2", v1.AnnotationNodeID) })
		a.putEgressIP(anEgressIP("e", 9, "172.18.0.33"))
		eventually(t, "assignment", "n2=172.18.0.33", func() string { return a.assigned("e") })
		for i := range 5 { // decided again and again, with n2 loaded and e not yet shown as assigned
			a.putNode(aNode(fmt.Sprintf("m%d", i), 10+i))
			a.putEgressIP(anEgressIP(fmt.Sprintf("f%d", i), 1, fmt.Sprintf("172.18.1.%d", i+1)))
		}
		eventually(t, "the last", "True", func() string { return string(a.condition("f4", "Assigned").Status) })
		time.Sleep(1300 * time.Millisecond) // and a pulse
		if have := a.assigned("e"); have != "n2=172.18.0.33" {
			t.Errorf("moved: %s", have)
		}
		for i := range 5 {
			if n := a.written(fmt.Sprintf("egressips/f%d", i)); n != 1 {
				t.Errorf("f%d: %d writes", i, n)
			}
			if r := a.reasons(fmt.Sprintf("f%d", i)); r != "Assigned" {
				t.Errorf("f%d: events %s", i, r)
			}
		}
	})
}

// A spec that changes while the status is written makes a conflict; the end is right, and says which generation it
// speaks of.
func TestConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(10 * time.Millisecond)
		a.putNode(aNode("n1", 2))
		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
		start(t, a)
		for i := range 20 {
			a.putEgressIP(anEgressIP("e", 0, fmt.Sprintf("172.18.0.%d", 40+i)))
			time.Sleep(3 * time.Millisecond)
		}
		eventually(t, "assignment", "n1=172.18.0.59", func() string { return a.assigned("e") })
		eventually(t, "generation", "21",
			func() string { return fmt.Sprint(a.condition("e", "Assigned").ObservedGeneration) })
	})
}

// Somebody else's hand in a status is undone, and his conditions stay.
func TestForeignStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _, _ := oneAssigned(t, 0, "n1")
		a.mu.Lock()
		o := a.eips["e"].DeepCopy()
		o.Status.Items = nil
		o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: "Foreign", Status: "Unknown",
			Reason: "R", LastTransitionTime: metav1.Unix(5, 0)})
		a.showEgressIP(o)
		a.mu.Unlock()
		eventually(t, "assignment", "n1=172.18.0.33", func() string { return a.assigned("e") })
		if c := a.condition("e", "Foreign"); c.Status != "Unknown" {
			t.Errorf("have %+v", c)
		}
	})
}

// Nothing but a condition differs, of which the world tells nobody.
func TestForeignCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _, _ := oneAssigned(t, 0, "n1")
		a.mu.Lock()
		o := a.eips["e"].DeepCopy()
		o.Status.Conditions[0].Message = "mine"
		a.showEgressIP(o)
		a.mu.Unlock()
		eventually(t, "message", "172.18.0.33 on n1", func() string { return a.condition("e", "Assigned").Message })
	})
}

func TestOnlyTheLeaderWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(0)
		a.putNode(aNode("n1", 2))
		_, stop := start(t, a)
		eventually(t, "id", "2", func() string { return a.annotation("n1", v1.AnnotationNodeID) })
		stop()
		time.Sleep(20 * time.Millisecond)
		a.putEgressIP(anEgressIP("e", 0, "172.18.0.33"))
		time.Sleep(100 * time.Millisecond)
		if n := a.written("egressips/e"); n != 0 {
			t.Errorf("%d writes without leading", n)
		}
	})
}

// A new leader finds the decisions of the old one in the objects, and has nothing to say.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, c, _, stop := oneAssigned(t, 0, "n1", "n2")
		eventually(t, "events", "Assigned", func() string { return a.reasons("e") })
		for n, record := range map[string]string{"n1": `{"addresses":["172.18.0.2"]}`,
			"n2": `{"addresses":["172.18.0.3"]}`} {
			eventually(t, "record of "+n, record, a.record(n))
		}
		stop()
		time.Sleep(20 * time.Millisecond)
		a.mu.Lock()
		writes := len(a.writes)
		a.mu.Unlock()
		c.Lead(t.Context())
		a.putEgressIP(anEgressIP("f", 0, "172.18.0.34"))
		eventually(t, "assignment", "n2=172.18.0.34", func() string { return a.assigned("f") })
		a.mu.Lock()
		defer a.mu.Unlock()
		if n := len(a.writes) - writes; n != 1 {
			t.Errorf("%d writes: %v", n, a.writes[writes:])
		}
	})
}

func TestDeletedAndMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _, _ := oneAssigned(t, time.Millisecond, "n1")
		a.deleteEgressIP("e")
		other := anEgressIP("e", 0, "172.18.0.34")
		other.UID = "other"
		a.putEgressIP(other)
		eventually(t, "assignment", "n1=172.18.0.34", func() string { return a.assigned("e") })
	})
}
