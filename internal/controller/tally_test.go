package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

// TestObjectsAreCountedByReason: an object whose pods leave with their node's address is counted with the reason why no
// address has a node, one whose pods' packets are dropped is not, and both are not Ready; addresses are told with their
// nodes. All of it ends with the objects.
func TestObjectsAreCountedByReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, m, _ := oneAssigned(t, time.Millisecond, "n1")
		drops := anEgressIP("drops", 0, "192.0.2.2")
		drops.Annotations = map[string]string{v1.AnnotationWhenUnassigned: "drop"}
		a.putEgressIP(anEgressIP("leaves", 0, "192.0.2.1"))
		a.putEgressIP(drops)
		service, slice := aBalancer()
		a.putBalanced(service, slice)
		for name, color := range map[string]string{"web": "", "none": "green"} {
			s := &v1.EgressService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-es"}}
			if color != "" {
				s.Spec.NodeSelector.MatchLabels = map[string]string{"color": color}
			}
			a.putEgressService(s)
		}
		eventually(t, "host", "n1 NoEndpoints", func() string { return a.host("shop/web") })
		eventually(t, "no host", " NoService", func() string { return a.host("shop/none") })
		eventually(t, "refusal", "NoNodeInNetwork", func() string { return a.condition("drops", "Ready").Reason })
		expectSeries(t, m,
			`assigned_egress_ips{node="n1"} 1`,
			`assigned_egress_services{node="n1"} 1`,
			`egress_address_info{ip="172.18.0.100",kind="EgressService",name="web",namespace="shop",node="n1"} 1`,
			`egress_address_info{ip="172.18.0.33",kind="EgressIP",name="e",namespace="",node="n1"} 1`,
			`egress_address_info{ip="192.0.2.1",kind="EgressIP",name="leaves",namespace="",node=""} 1`,
			`egress_address_info{ip="192.0.2.2",kind="EgressIP",name="drops",namespace="",node=""} 1`,
			`fallback_objects{kind="EgressIP",reason="NoNodeInNetwork"} 1`,
			`fallback_objects{kind="EgressService",reason="NoService"} 1`,
			`not_ready_objects{kind="EgressIP",reason="NoNodeInNetwork"} 2`,
			`not_ready_objects{kind="EgressIP",reason="WaitingForNode"} 1`,
			`not_ready_objects{kind="EgressService",reason="NoEndpoints"} 1`,
			`not_ready_objects{kind="EgressService",reason="NoService"} 1`,
			`unassigned_egressips 2`,
			`unassigned_egressservices 1`)
		for _, name := range []string{"e", "leaves", "drops"} {
			a.deleteEgressIP(name)
		}
		a.deleteEgressService("shop/web")
		a.deleteEgressService("shop/none")
		time.Sleep(2 * time.Second)
		expectSeries(t, m)
	})
}

// TestReadyIsCounted: an object is no longer counted as not Ready once its node says that it holds the address, which
// changes a condition and nothing else.
func TestReadyIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, m, _ := oneAssigned(t, time.Millisecond, "n1")
		want := []string{`assigned_egress_ips{node="n1"} 1`,
			`egress_address_info{ip="172.18.0.33",kind="EgressIP",name="e",namespace="",node="n1"} 1`}
		time.Sleep(time.Second)
		expectSeries(t, m, append(want, `not_ready_objects{kind="EgressIP",reason="WaitingForNode"} 1`)...)
		for range 2 { // the second time the EgressIP is in force already
			a.hold("n1", map[string][]string{"e": {"172.18.0.33"}})
			eventually(t, "Ready", "True", func() string { return string(a.condition("e", "Ready").Status) })
			time.Sleep(time.Second)
			expectSeries(t, m, want...)
			a.hold("n1", nil)
			time.Sleep(time.Second)
			expectSeries(t, m, append(want, `not_ready_objects{kind="EgressIP",reason="WaitingForNode"} 1`)...)
		}
	})
}

// TestLastEgressNodeGoes: the pods of an EgressIP whose only node is unlabelled leave with their node's address, and a
// controller that takes over counts the same.
func TestLastEgressNodeGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, c, m, stop := oneAssigned(t, time.Millisecond, "n1")
		n := aNode("n1", 2)
		delete(n.Labels, world.AssignableLabel)
		a.putNode(n)
		time.Sleep(time.Second)
		want := []string{`egress_address_info{ip="172.18.0.33",kind="EgressIP",name="e",namespace="",node=""} 1`,
			`fallback_objects{kind="EgressIP",reason="NoAssignableNode"} 1`,
			`not_ready_objects{kind="EgressIP",reason="NoAssignableNode"} 1`, `unassigned_egressips 1`}
		expectSeries(t, m, want...)
		stop()
		synctest.Wait()
		expectSeries(t, m)
		c.Found(t.Context(), probe.Change{Node: "n1", Why: world.NodeUnreachable})
		c.Lead(t.Context())
		time.Sleep(time.Second)
		expectSeries(t, m, append(want, `node_unreachable{node="n1",reason="NodeUnreachable"} 1`)...)
	})
}

// TestAddressesAreBounded: of more addresses than there may be series, the others are counted.
func TestAddressesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, m, _ := oneAssigned(t, time.Millisecond, "n1")
		for i := range 40 {
			e := anEgressIP(fmt.Sprintf("many-%d", i), 0)
			for j := range 64 {
				e.Spec.EgressIPs = append(e.Spec.EgressIPs, fmt.Sprintf("192.0.%d.%d", 2+i, j))
			}
			a.putEgressIP(e)
		}
		time.Sleep(5 * time.Second)
		series, leftOut := 0, ""
		for _, s := range ownSeries(t, m) {
			if strings.HasPrefix(s, "egress_address_info") {
				series++
			}
			if _, n, is := strings.Cut(s, "egress_addresses_left_out "); is {
				leftOut = n
			}
		}
		if series != 2000 || leftOut != "561" {
			t.Errorf("%d series, %q left out", series, leftOut)
		}
	})
}

// expectSeries compares the gauges about the cluster that are not 0, without "egret_controller_" and but for that of
// the leader.
func expectSeries(t *testing.T, m *controller.Metrics, want ...string) {
	t.Helper()
	slices.Sort(want)
	if have := ownSeries(t, m); !slices.Equal(have, want) {
		t.Errorf("have\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

func ownSeries(t *testing.T, m *controller.Metrics) (out []string) {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name, own := strings.CutPrefix(f.GetName(), "egret_controller_")
		if !own || name == "leader" {
			continue
		}
		for _, one := range f.GetMetric() {
			if g := one.GetGauge(); g != nil && g.GetValue() != 0 {
				var labels []string
				for _, l := range one.GetLabel() {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
				text := name
				if len(labels) > 0 {
					text += "{" + strings.Join(labels, ",") + "}"
				}
				out = append(out, fmt.Sprintf("%s %g", text, g.GetValue()))
			}
		}
	}
	slices.Sort(out)
	return out
}
