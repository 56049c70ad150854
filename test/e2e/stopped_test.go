package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// Times that a process stands still, may do so untold, and may be told of after it goes on.
const (
	toldIn   = 5 * time.Second
	healedIn = 10 * time.Second
	// standstill is a gap in a flow of another node that these two cores do not explain: nodes share them, and single
	// datagrams are lost when one of them stops.
	standstill = time.Second
	readDelay  = time.Second // of what a test reads over the API on busy cores
)

// stoppable are the processes whose silence a node's agent tells of, with their names there.
var stoppable = map[string]string{
	"ovsdb-server": "ovsdb-server (Open_vSwitch)", "ovsdb-nb": "ovsdb-server (OVN_Northbound)",
	"ovsdb-sb":     "ovsdb-server (OVN_Southbound)",
	"ovs-vswitchd": "ovs-vswitchd", "ovn-northd": "ovn-northd", "ovn-controller": "ovn-controller",
}

// TestStoppedProcess stops (SIGSTOP) each process of a node in turn. Its agent says so, in its EgressNode and at
// /healthz, and says that it is over when the process goes on; a pod that is created there meanwhile runs then, with
// the right source; a pod of another node goes on sending, and with no other source.
func TestStoppedProcess(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	c.noneEnds(t) // a pod of the test before may be on the node that stands still
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	ips := c.number(72)
	e := c.egressIP(t, "stopped", ips, n.itself(), metav1.LabelSelector{})
	e.ready()
	seen := c.capture(t)
	n.runs(pod{name: "b", node: c.nodes[1], sends: true})
	seen.flowing(c, n, []string{"b"}, time.Now(), soon)
	begin := time.Now()
	node := c.nodes[0].Name
	for process, name := range stoppable {
		signal := func(s syscall.Signal) {
			if err := c.SignalProcess(context.WithoutCancel(t.Context()), node, process, s); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { signal(syscall.SIGCONT) })
		signal(syscall.SIGSTOP)
		waiting := pod{name: "during-" + process, node: c.nodes[0]}
		n.creates(waiting)
		told := toldIn
		if process == "ovs-vswitchd" { // it carries the node's own packets here: nobody can be told before it goes on
			time.Sleep(toldIn)
		} else {
			told = within(t, toldIn+readDelay, func() error { return c.tells(t, node, name, true) })
			c.healthNames(t, c.nodes[0], name)
		}
		signal(syscall.SIGCONT)
		healed := within(t, healedIn, func() error { return c.tells(t, node, name, false) })
		n.awaits(waiting)
		n.from(waiting.name).to(c.outside(0)).arrivesAs(ips...)
		t.Logf("%-16s told after %v, healed after %v", process, told.Round(time.Millisecond),
			healed.Round(time.Millisecond))
	}
	lost := seen.lost(begin)
	t.Logf("pod of another node: %s", lost)
	if lost.Gap > standstill {
		t.Errorf("the traffic of a pod of another node stood still: %s", lost)
	}
	seen.onlyFrom(n, ips)
}

// TestPodComesUnderWhileOVNStandsStill: ovn-controller of a pod's node stands still while the pod comes under an
// EgressIP on another node, which serves a pod of that node already. That one goes on, in both families. The EgressIP
// is Ready once the pod is served.
func TestPodComesUnderWhileOVNStandsStill(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	group := selects(map[string]string{"egret-e2e-group": "under"})
	e := c.egressIP(t, "under", c.number(240), n.itself(), group)
	n.runs(pod{name: "comes", node: c.nodes[0]}, pod{name: "stays", node: c.nodes[0], labels: group.MatchLabels})
	e.ready()
	signal := func(s syscall.Signal) {
		must(t, c.SignalProcess(context.WithoutCancel(t.Context()), c.nodes[0].Name, "ovn-controller", s))
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	signal(syscall.SIGSTOP)
	n.label("comes", group.MatchLabels)
	o := e.until(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonWaitingForNode)
	k := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionReady)
	if !strings.Contains(k.Message, "process/ovn-controller") {
		t.Errorf("Ready is False, and does not say why: %s", k.Message)
	}
	// What the pod has asked for has aged.
	must(t, n.inside("stays", exec.Command("ip", "neigh", "flush", "dev", "eth0").Run))
	n.from("stays").to(c.outside(0)).arrivesAs(c.number(240)...)
	signal(syscall.SIGCONT)
	e.ready()
	n.from("comes").to(c.outside(0)).arrivesAs(c.number(240)...)
}

// healthNames asks a node's agent for its health: it answers in time, that it lives, and which process does not.
func (c *cluster) healthNames(t *testing.T, node sandbox.Member, process string) {
	t.Helper()
	response, err := clientIn(node.Name).Get(url(node.IPs[0], sandbox.AgentMetricsPort, "/healthz"))
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(said), "process/"+process+": ") {
		t.Errorf("while %s stands still, /healthz says %s %q %v", process, response.Status, said, err)
	}
}

// tells is nil when a node's EgressNode has, or has not, a problem of that process.
func (c *cluster) tells(t *testing.T, node, process string, want bool) error {
	o := &egretv1.EgressNode{}
	if err := c.kube.Egret.Get().Resource("egressnodes").Name(node).Do(t.Context()).Into(o); err != nil {
		return err
	}
	has := slices.ContainsFunc(o.Status.Problems,
		func(p string) bool { return strings.HasPrefix(p, "process/"+process+":") })
	if has != want {
		return fmt.Errorf("problem of %s: %v, want %v; problems are %q", process, has, want, o.Status.Problems)
	}
	return nil
}
