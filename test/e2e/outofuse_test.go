package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// outOfUse is how long a node may go on with an address after the status says that it is not there any more.
const outOfUse = 3 * time.Second

// TestOutOfUse: a node that is to give its addresses up does, whether or not another can take them: neither its NAT
// rows nor its EgressNode have them three seconds after the status says so, and from then on no packet leaves with an
// address that is on no node.
func TestOutOfUse(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[1], sends: true}, pod{name: "c",
		node: c.nodes[2], sends: true})
	seen := c.capture(t)
	nothing := func(*use) {}
	for i, way := range []way{
		{"label", func(u *use) { u.c.unlabelEgress(u.t, u.from) }, nothing},
		{"cordon", func(u *use) { u.c.cordon(u.t, u.from.Name, `"maintenance"`) },
			func(u *use) { u.c.cordon(u.t, u.from.Name, "null") }},
		{"not-ready", (*use).stopKubelet, func(u *use) { u.c.startKubelet(u.t, u.from.Name) }},
		{"spec", func(u *use) { u.e.replace(u.away, u.instead) }, nothing},
		{"deletion", func(u *use) { u.e.delete() }, nothing},
	} {
		for _, successor := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/successor-%v", way.name, successor), func(t *testing.T) {
				if way.name == "not-ready" {
					c.inFullMatrix(t)
				}
				c.outOfUse(t, n, seen, fmt.Sprintf("out-of-use-%s-%v", way.name, successor), successor, 140+4*i, way)
			})
		}
	}
}

// way is one of taking a node out of use, and what brings it back.
type way struct {
	name     string
	do, undo func(*use)
}

// use is an EgressIP whose addresses are on two nodes; one of them is taken out of use.
type use struct {
	t       *testing.T
	c       *cluster
	e       egressIP
	from    sandbox.Member
	away    []netip.Addr // those on that node
	instead []netip.Addr // what the spec can name in their place; none without a successor
}

func (c *cluster) outOfUse(t *testing.T, n *namespace, seen *capture, name string, successor bool, number int,
	way way) {
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	ips := concat(c.number(number), c.number(number+1))
	u := &use{t: t, c: c, e: c.egressIP(t, name, ips, n.itself(), metav1.LabelSelector{}), from: c.nodes[2]}
	for ip, node := range u.e.ready() {
		if node == u.from.Name {
			u.away = append(u.away, netip.MustParseAddr(ip))
		}
	}
	if successor {
		c.labelEgress(t, c.nodes[0])
		u.instead = c.number(number + 2)
	}
	within(t, soon, func() error { return seen.leaving(n, ips) })
	seen.Forget()
	defer way.undo(u)
	way.do(u)
	within(t, notReadyTimeout, u.said)
	said := time.Now()
	within(t, outOfUse, u.gone)
	t.Logf("out of use %s after the status said so", time.Since(said).Round(time.Millisecond))
	if u.e.exists() {
		seen.eachItsOwn(n)
	}
	if successor && u.e.exists() {
		return
	}
	time.Sleep(time.Until(said.Add(outOfUse)))
	begin := time.Now()
	seen.flowing(c, n, []string{"a", "b", "c"}, begin, soon)
	for _, x := range seen.Since(begin) {
		if slices.Contains(u.away, x.Src) {
			t.Fatalf("%s leaves as %s, which is on no node", x.Pod, x.Src)
		}
	}
}

// said is nil when the status has none of the addresses on the node any more, or is gone.
func (u *use) said() error {
	o, err := u.e.get()
	if err != nil {
		return nil
	}
	for ip, node := range nodesOf(o) {
		if node == u.from.Name && slices.Contains(u.away, netip.MustParseAddr(ip)) {
			return fmt.Errorf("%s is still on node %s", ip, node)
		}
	}
	return nil
}

// gone is nil when neither the node's NAT rows nor its EgressNode have the addresses.
func (u *use) gone() error {
	rows := u.c.on(u.t, u.from.Name, "ovn-nbctl", "lr-nat-list", "GR_"+u.from.Name)
	o := &egretv1.EgressNode{}
	if err := u.c.kube.Egret.Get().Resource("egressnodes").Name(u.from.Name).Do(u.t.Context()).Into(o); err != nil {
		return err
	}
	for _, ip := range u.away {
		if slices.Contains(strings.Fields(rows), ip.String()) {
			return fmt.Errorf("%s translates to %s:\n%s", u.from.Name, ip, rows)
		}
		is := func(h egretv1.Held) bool { return h.EgressIP == u.e.name && h.IP == ip.String() }
		if slices.ContainsFunc(o.Status.Holding, is) {
			return fmt.Errorf("EgressNode %s has %s", u.from.Name, ip)
		}
	}
	return nil
}

func (u *use) stopKubelet() {
	if err := u.c.StopProcess(u.t.Context(), u.from.Name, "kubelet"); err != nil {
		u.t.Fatal(err)
	}
}

// replace takes addresses out of the spec, and puts others there.
func (e egressIP) replace(out, in []netip.Addr) {
	e.t.Helper()
	o, err := e.get()
	if err != nil {
		e.t.Fatal(err)
	}
	kept := slices.DeleteFunc(o.Spec.EgressIPs,
		func(s string) bool { return slices.Contains(out, netip.MustParseAddr(s)) })
	ips, err := json.Marshal(append(kept, texts(in)...))
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.patch(fmt.Sprintf(`{"spec":{"egressIPs":%s}}`, ips)); err != nil {
		e.t.Fatal(err)
	}
}

func (e egressIP) exists() bool {
	_, err := e.get()
	return err == nil
}
