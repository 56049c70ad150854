package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/oracle"
	"github.com/egret-net/egret/test/traffic"
)

// deadHolder is a node that holds the addresses of two EgressIPs, and whose agent hangs, or is dead.
type deadHolder struct {
	*testing.T
	c    *cluster
	n    *namespace
	node string
	seen *capture
	to   []netip.Addr // destinations that silence and flow are about; nil is all
}

// TestDeadHolder: a node that holds the addresses of two EgressIPs, and whose agent hangs or is dead, gives no pod the
// other EgressIP's address: neither one that came under the other, nor a new one that has a former pod's address. Such
// pods send nothing until the agent is back. The EgressIP is not Ready meanwhile, and its other pods go on sending,
// also while their own node's agent starts again, and while objects come and go that concern none of them. The full
// matrix goes on with the other kinds of objects.
func TestDeadHolder(t *testing.T) {
	c := theCluster(t)
	c.inOneMode(t)
	c.labelEgress(t, c.nodes[2])
	d := &deadHolder{T: t, c: c, n: c.namespace(t, nil), node: c.nodes[2].Name, seen: c.capture(t)}
	var b egressIP
	for i, group := range []string{"a", "b"} {
		b = c.egressIP(t, "dead-holder-"+group, c.number(236+i), d.n.itself(), d.in(group))
		b.readyOn(c.nodes[2])
	}
	d.n.runs(pod{name: "of-service", node: c.nodes[0], labels: d.in("service").MatchLabels})
	d.holdsService("service", 224)
	for _, p := range []string{"stays", "relabelled", "replaced"} { // the last has the highest address
		d.n.runs(pod{name: p, node: c.nodes[0], labels: d.in("a").MatchLabels, sends: true})
	}
	d.n.runs(pod{name: "of-b", node: c.nodes[0], labels: d.in("b").MatchLabels, sends: true})
	within(t, soon, func() error { return d.flow("stays", "relabelled", "replaced", "of-b") })
	d.hangs(b)
	d.dies()
	if fullMatrix() {
		d.otherKinds()
	}
	if wrong := d.seen.misjudged(d.n.name+"/", time.Time{}); len(wrong) > 0 {
		t.Errorf("wrong sources: %q", wrong)
	}
}

func (d *deadHolder) in(group string) metav1.LabelSelector {
	return selects(map[string]string{"egret-e2e-group": group})
}

// hangs stops the holder's agent, and has a pod come under the other EgressIP.
func (d *deadHolder) hangs(b egressIP) {
	d.signal(syscall.SIGSTOP)
	d.Cleanup(func() { d.signal(syscall.SIGCONT) })
	d.n.label("relabelled", d.in("b").MatchLabels)
	d.silent("relabelled")
	within(d.T, soon, func() error {
		o, err := b.get()
		if err != nil {
			return err
		}
		k := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionReady)
		says := strings.Contains(k.Message, d.node) && strings.Contains(k.Message, "does not say that it has followed")
		if k.Status != metav1.ConditionFalse || !says {
			return fmt.Errorf("Ready is %s: %s", k.Status, k.Message)
		}
		return nil
	})
	d.unrelated()
	d.silent("relabelled")
	must(d.T, d.flow("stays", "of-b"))
	d.signal(syscall.SIGCONT)
	d.goesOn("relabelled")
	b.readyOn(d.c.nodes[2])
}

// unrelated has an EgressIP with networks of its own come for pods of no namespace, and has an EgressService of another
// pod go.
func (d *deadHolder) unrelated() {
	others := d.n.name + "-others"
	networks := selects(map[string]string{"for": others})
	d.c.egressIPOf(d.T, others, v1.EgressIPSpec{EgressIPs: texts(d.c.number(238)), TrafficSelector: &networks,
		NamespaceSelector: selects(map[string]string{"kubernetes.io/metadata.name": others})})
	byDestination{d.T, d.c, d.n}.traffic(others, others, "203.0.113.0/24")
	egressService{d.T, d.c, d.n.name, "service"}.deletes()
}

// dies kills the holder's agent. Then a pod comes under the other EgressIP, and a new pod gets the address of a deleted
// one. An agent that starts gives addresses behind the highest in use.
func (d *deadHolder) dies() {
	d.Cleanup(func() { d.c.startAgent(d.T, d.node) })
	must(d.T, d.c.StopProcess(d.Context(), d.node, "egret-node"))
	d.n.label("relabelled", d.in("a").MatchLabels)
	former := d.n.ips["replaced"]
	d.detached("of-b", "replaced")
	must(d.T, d.c.KillProcess(d.Context(), d.c.nodes[0].Name, "egret-node"))
	successor := d.successor(former)
	d.silent("relabelled", successor)
	must(d.T, d.flow("stays"))
	d.c.startAgent(d.T, d.node)
	d.goesOn("relabelled", "stays", successor)
}

// detached deletes pods, and returns when their node no longer has their ports: without a grace period an object is
// gone before its containers are.
func (d *deadHolder) detached(pods ...string) {
	for _, p := range pods {
		d.n.deletes(p)
	}
	within(d.T, podsTimeout, func() error {
		ports := d.c.on(d.T, d.c.nodes[0].Name, "ovs-vsctl", "--bare", "--columns=external_ids", "list", "Interface")
		for _, p := range pods {
			if strings.Contains(ports, d.n.name+"_"+p) {
				return fmt.Errorf("the port of pod %s is still there", p)
			}
		}
		return nil
	})
}

// goesOn waits until pods are seen again, with the right source.
func (d *deadHolder) goesOn(pods ...string) {
	begin := time.Now()
	within(d.T, soon, func() error { return d.flow(pods...) })
	if wrong := d.seen.misjudged(d.n.name+"/", begin); len(wrong) > 0 {
		d.Errorf("after the agent went on: wrong sources: %q", wrong)
	}
}

// successor is a new pod of the other EgressIP that has the address of a former one.
func (d *deadHolder) successor(former []netip.Addr) string {
	for i := range 5 {
		p := pod{name: fmt.Sprint("successor-", i), node: d.c.nodes[0], labels: d.in("b").MatchLabels, sends: true}
		d.n.runs(p)
		if slices.Equal(d.n.ips[p.name], former) {
			return p.name
		}
	}
	d.Fatalf("no new pod got %v", former)
	return ""
}

// silent fails the test if pods are seen in the second after the promise.
func (d *deadHolder) silent(pods ...string) {
	time.Sleep(oracle.Promise)
	begin := time.Now()
	time.Sleep(time.Second)
	for _, p := range pods {
		if d.sends(p, begin) {
			d.Errorf("%s sends, wrongly: %q", p, d.seen.misjudged(d.n.name+"/"+p, begin))
		}
	}
}

// flow says which of some pods was not seen in the last second.
func (d *deadHolder) flow(pods ...string) error {
	for _, p := range pods {
		if !d.sends(p, time.Now().Add(-time.Second)) {
			return fmt.Errorf("nothing is seen of %s", p)
		}
	}
	return nil
}

func (d *deadHolder) sends(pod string, begin time.Time) bool {
	is := func(x traffic.Sighting) bool {
		return x.Pod == d.n.name+"/"+pod && (d.to == nil || slices.Contains(d.to, x.Dst))
	}
	return slices.ContainsFunc(d.seen.Since(begin), is)
}
