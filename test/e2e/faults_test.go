package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/egret-net/egret/test/traffic"
)

// watched is how long the traffic is looked at after each kill: what a process does when it is back comes in this time.
const watched = 2 * time.Second

// killed are the processes of a node that EgressIP depends on.
var killed = []string{"egret-node", "ovn-controller", "ovn-northd", "ovsdb-nb", "ovsdb-sb", "ovsdb-server",
	"ovs-vswitchd", "egret-controller"}

// TestFaults kills every process of every node, one after the other, and cuts the power of an egress node, while
// selected pods on all nodes send. Afterwards the packets are as before; meanwhile none left with another source than
// the pod's egress IPs.
func TestFaults(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes...)
	ips := concat(c.number(70), c.number(71))
	e := c.egressIP(t, "faults", ips, n.itself(), metav1.LabelSelector{})
	e.ready()
	seen := c.capture(t)
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[1], sends: true}, pod{name: "c",
		node: c.nodes[2], sends: true})
	pods := []string{"a", "b", "c"}
	seen.flowing(c, n, pods, time.Now(), soon)
	f := &faults{t: t, c: c, n: n, seen: seen, pods: pods, worst: map[string]traffic.Loss{}}
	for _, process := range killed {
		for _, node := range c.nodes {
			f.kill(node.Name, process)
		}
	}
	f.power(e)
	e.ready()
	for kind, worst := range f.worst {
		t.Logf("%-16s %s", kind, worst)
	}
	seen.onlyFrom(n, ips)
}

type faults struct {
	t     *testing.T
	c     *cluster
	n     *namespace
	seen  *capture
	pods  []string
	worst map[string]traffic.Loss
}

// kill ends a process as the kernel does when memory is short; nodes that do not run it are left alone.
func (f *faults) kill(node, process string) {
	f.t.Helper()
	units, err := f.c.Processes(f.t.Context(), node)
	if err != nil {
		f.t.Fatal(err)
	}
	runs := sets.New[string]()
	for _, u := range units {
		runs.Insert(u.Name)
	}
	if !runs.Has(process) {
		return
	}
	begin := time.Now()
	if err := f.c.KillProcess(f.t.Context(), node, process); err != nil {
		f.t.Fatal(err)
	}
	time.Sleep(watched)
	f.recovered(process, begin)
}

func (f *faults) recovered(kind string, begin time.Time) {
	f.t.Helper()
	f.seen.flowing(f.c, f.n, f.pods, time.Now(), notReadyTimeout)
	f.note(kind, f.seen.lost(begin.Add(-100*time.Millisecond)))
}

// note keeps the worst of each kind.
func (f *faults) note(kind string, l traffic.Loss) {
	if l.Gap > f.worst[kind].Gap {
		f.worst[kind] = l
	}
}

// power cuts the power of a node that hosts an address, and brings it back when another has taken over.
func (f *faults) power(e egressIP) {
	f.t.Helper()
	hosting := f.hosting(e)
	begin, others := time.Now(), []string{}
	for _, p := range f.pods {
		if f.n.at[p] != hosting {
			others = append(others, p)
		}
	}
	f.t.Cleanup(func() { _ = f.c.PowerOn(context.Background(), hosting) })
	if err := f.c.PowerOff(hosting); err != nil {
		f.t.Fatal(err)
	}
	f.t.Logf("%v before power-off of %s", f.sources(begin.Add(-time.Second)), hosting)
	moved := within(f.t, notReadyTimeout, func() error { return e.notOn(hosting) })
	f.t.Logf("%v in %s until moved to %v", f.sources(begin), moved.Round(time.Millisecond), e.ready())
	f.seen.flowing(f.c, f.n, others, time.Now(), notReadyTimeout)
	f.note("power-off", f.seen.lost(begin.Add(-time.Second)))
	f.c.powerOn(f.t, hosting)
	f.seen.flowing(f.c, f.n, f.pods, time.Now(), podsTimeout)
}

// sources counts datagrams of new connections by pod and source, after a time.
func (f *faults) sources(begin time.Time) map[string]int {
	out := map[string]int{}
	for _, x := range f.seen.Since(begin) {
		if x.Kind == "new" {
			out[x.Pod[strings.LastIndex(x.Pod, "/")+1:]+" "+x.Src.String()]++
		}
	}
	return out
}

// hosting is a node that hosts an address; of several the last.
func (f *faults) hosting(e egressIP) string {
	name := ""
	for _, node := range e.ready() {
		name = max(name, node)
	}
	return name
}
