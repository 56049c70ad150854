package e2e

import (
	"context"
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
)

// Places outside: two hosts on the primary network, whose addresses are networks of their own, and the secondary
// network.
const (
	health = iota
	work
	elsewhere // host health on the secondary network, which pods reach by the link alone
)

// byDestination is a test with pods on an egress node and on another, and EgressIPs that have networks.
type byDestination struct {
	*testing.T
	c *cluster
	n *namespace
}

var trafficPods = []string{"near", "far"}

func newByDestination(t *testing.T) byDestination {
	c := theCluster(t)
	b := byDestination{t, c, c.namespace(t, nil)}
	c.labelEgress(t, c.nodes[1])
	for i, p := range trafficPods {
		b.n.runs(pod{name: p, node: c.nodes[1+i], labels: web})
	}
	return b
}

func (b byDestination) outside(where int) endpoint {
	if where == elsewhere {
		return b.c.beside(health)
	}
	return b.c.outside(where)
}

// networks are the addresses of a place outside, as prefixes.
func (b byDestination) networks(where int) (out []v1.CIDR) {
	for _, ip := range b.outside(where).ips {
		out = append(out, v1.CIDR(netip.PrefixFrom(ip, ip.BitLen()).String()))
	}
	return out
}

// traffic creates an EgressIPTraffic with a label; it goes when the test ends.
func (b byDestination) traffic(name, label string, networks ...v1.CIDR) {
	b.Helper()
	o := &v1.EgressIPTraffic{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"for": label}},
		Spec:       v1.EgressIPTrafficSpec{DestinationNetworks: networks},
	}
	err := b.c.kube.EgressIP.Post().Resource("egressiptraffics").Body(o).Do(b.Context()).Error()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { b.c.kube.EgressIP.Delete().Resource("egressiptraffics").Name(name).Do(context.Background()) })
}

func (b byDestination) deleteTraffic(name string) {
	b.Helper()
	must(b.T, b.c.kube.EgressIP.Delete().Resource("egressiptraffics").Name(name).Do(b.Context()).Error())
}

func (b byDestination) patchTraffic(name, patch string) {
	b.Helper()
	err := b.c.kube.EgressIP.Patch(types.MergePatchType).Resource("egressiptraffics").Name(name).Body([]byte(patch)).
		Do(b.Context()).Error()
	if err != nil {
		b.Fatal(err)
	}
}

// egressIP creates one for this test's pods, to what has the label.
func (b byDestination) egressIP(name, label string, ips []netip.Addr) egressIP {
	b.Helper()
	traffic := selects(map[string]string{"for": label})
	e := b.c.egressIPOf(b.T, b.n.name+"-"+name, v1.EgressIPSpec{EgressIPs: texts(ips),
		NamespaceSelector: b.n.itself(), PodSelector: selects(web), TrafficSelector: &traffic})
	e.readyOn(b.c.nodes[1])
	return e
}

// leave says with which sources pods leave to a place; nil is their node's. Before, they may have had others.
func (b byDestination) leave(where int, ips []netip.Addr, before ...netip.Addr) {
	b.Helper()
	b.leaveOf(trafficPods, where, ips, before...)
}

// leaveOf is leave for some pods, on the egress node and the other.
func (b byDestination) leaveOf(pods []string, where int, ips []netip.Addr, before ...netip.Addr) {
	b.Helper()
	for i, p := range pods {
		node := b.c.nodes[1+i].IPs
		want := ips
		if want == nil {
			want = node
		}
		b.n.from(p).to(b.outside(where)).formerly(concat(before, node)...).soonArrivesAs(want...)
		b.n.from(p).to(b.outside(where)).arrivesAs(want...)
	}
}

// TestTraffic is seed egress-ip-per-destination.md: pods have an egress IP to each of two networks, and their node's
// address elsewhere; the networks follow objects and their labels.
func TestTraffic(t *testing.T) {
	b := newByDestination(t)
	first, second := b.c.number(180), b.c.number(181)
	b.traffic(b.n.name+"-health", b.n.name+"-health", b.networks(health)...)
	e := b.egressIP("health", b.n.name+"-health", first)
	e.until(v1.ConditionTrafficSelected, metav1.ConditionTrue, v1.ReasonNetworksSelected)
	b.leave(health, first)
	b.leave(work, nil)

	b.traffic(b.n.name+"-work", b.n.name+"-work", b.networks(work)...)
	b.egressIP("work", b.n.name+"-work", second)
	b.leave(health, first)
	b.leave(work, second)

	b.patchTraffic(b.n.name+"-health", `{"metadata":{"labels":{"for":"nobody"}}}`)
	e.until(v1.ConditionTrafficSelected, metav1.ConditionFalse, v1.ReasonNoNetworks)
	e.tells(v1.EventNetworksRemoved, "no longer")
	b.leave(health, nil, first...)
	b.leave(work, second)

	b.patchTraffic(b.n.name+"-health", `{"metadata":{"labels":{"for":"`+b.n.name+`-health"}}}`)
	b.leave(health, first)
	e.delete()
	b.leave(health, nil, first...)
	b.leave(work, second)
}

// TestTrafficOverlap: of EgressIPs with a network in common the older serves the pods; the other stands by, as a whole,
// until that is gone.
func TestTrafficOverlap(t *testing.T) {
	b := newByDestination(t)
	first, second := b.c.number(182), b.c.number(183)
	b.traffic(b.n.name+"-one", b.n.name+"-one", b.networks(health)...)
	b.traffic(b.n.name+"-both", b.n.name+"-both", append(b.networks(health), b.networks(work)...)...)
	older := b.egressIP("older", b.n.name+"-one", first)
	b.leave(health, first)
	b.c.nextSecond(t, older)
	younger := b.egressIP("younger", b.n.name+"-both", second)
	younger.until(v1.ConditionOverlapped, metav1.ConditionTrue, v1.ReasonServedByOther)
	b.leave(health, first)
	b.leave(work, nil)
	older.delete()
	b.leave(health, second, first...)
	b.leave(work, second)
}

// TestTrafficOnLinks: one EgressIP is on the primary network, the other on a link of the same node.
func TestTrafficOnLinks(t *testing.T) {
	b := newByDestination(t)
	first, second := b.c.number(184), b.c.secondaryNumber(184)
	b.traffic(b.n.name+"-health", b.n.name+"-health", b.networks(health)...)
	b.traffic(b.n.name+"-elsewhere", b.n.name+"-elsewhere", b.networks(elsewhere)...)
	b.egressIP("health", b.n.name+"-health", first)
	e := b.egressIP("elsewhere", b.n.name+"-elsewhere", second)
	b.leave(health, first)
	b.leave(elsewhere, second)
	b.leave(work, nil)
	e.delete()
	b.leave(health, first)
}

// TestTrafficMissed: what changed while no agent ran is so once one does.
func TestTrafficMissed(t *testing.T) {
	b := newByDestination(t)
	ips := b.c.number(185)
	b.traffic(b.n.name+"-one", b.n.name+"-one", b.networks(health)...)
	b.egressIP("one", b.n.name+"-one", ips)
	b.leave(health, ips)
	for _, node := range b.c.nodes[1:] {
		if err := b.c.StopProcess(t.Context(), node.Name, "egret-node"); err != nil {
			t.Fatal(err)
		}
	}
	b.patchTraffic(b.n.name+"-one", `{"spec":{"destinationNetworks":["`+string(b.networks(work)[0])+`"]}}`)
	for _, node := range b.c.nodes[1:] {
		b.c.startAgent(t, node.Name)
	}
	b.leave(health, nil, ips...)
	for i, p := range trafficPods {
		to := family4or6(b.outside(work), b.outside(work).ips[0])
		b.n.from(p).to(to).formerly(b.c.nodes[1+i].IPs...).soonArrivesAs(ips...)
	}
}
