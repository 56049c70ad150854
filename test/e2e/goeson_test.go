package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// goingOn are connections by addresses of objects of several kinds, all of which one node holds.
type goingOn struct {
	*testing.T
	c    *cluster
	n    *namespace
	k    *kept
	want map[netip.Addr]int // connections by source
	port int                // the first source port; nodes remember connections of a former run for a day
}

// TestEstablishedConnectionsGoOn: the node that holds an egress IP loses its power. Connections and datagrams of pods
// on other nodes go on with the same source address and port: 1,000 connections of 20 pods to one destination, and
// those over which the server speaks. So do connections by a link, and by an EgressService.
func TestEstablishedConnectionsGoOn(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	g := &goingOn{T: t, c: c, n: c.namespace(t, nil), k: keptBy(t, c.hosts...), want: map[netip.Addr]int{},
		port: 12000 + rand.IntN(50000)}
	c.labelEgress(t, c.nodes[1])
	many := c.egressIP(t, "goes-on", c.number(230), g.n.itself(), g.in("many"))
	link := c.egressIP(t, "goes-on-link", c.secondaryNumber(230), g.n.itself(), g.in("link"))
	service := g.service("service", 194)
	many.readyOn(c.nodes[1])
	link.readyOn(c.nodes[1])
	within(t, soon, func() error { return service.labelled(c.nodes[1].Name) }) // without pods it is not Ready
	service.announcedBy(c.nodes[1])
	pods := g.pods("many", 20, 50, c.number(230), concat(c.hosts[0].IPs, c.hosts[1].IPs))
	pods = append(pods, g.pods("link", 2, 5, c.secondaryNumber(230), c.hosts[0].Secondary[0])...)
	pods = append(pods, g.pods("service", 2, 5, service.b.balancer.ips, c.hosts[0].IPs)...)
	g.n.runs(pods...)
	within(t, podsTimeout, g.complete)
	c.labelEgress(t, c.nodes[2])

	g.k.forgets()
	c.powerOff(t, c.nodes[1].Name)
	service.hostIs(c.nodes[2].Name, notReadyTimeout)
	service.announcedBy(c.nodes[2])
	g.goOn("without the node")
	t.Logf("%v connections by source; the longest gaps: %v", g.want, g.k.longest())
	c.powerOn(t, c.nodes[1].Name)
	g.goOn("with the node back")
}

func (g *goingOn) in(group string) metav1.LabelSelector {
	return selects(map[string]string{"egret-e2e-group": group})
}

// service makes a Service of the group of its name, whose host is an egress node.
func (g *goingOn) service(group string, number int) behindService {
	s := behindService{egressService: egressService{g.T, g.c, g.n.name, group}, n: g.n}
	s.b = g.n.balances(group, number, func(s *corev1.ServiceSpec) { s.Selector = g.in(group).MatchLabels })
	s.creates(v1.EgressServiceSpec{NodeSelector: selectsWhere(v1.LabelEgressAssignable,
		metav1.LabelSelectorOpExists)})
	return s
}

// pods are those of a group, on the two nodes that stay, which leave with these addresses. Each has so many connections
// to the first destination, a few to the others, to each some over which the server speaks, and a flow of datagrams.
// No two have the same port to one destination; to different ones they have.
func (g *goingOn) pods(group string, pods, connections int, ips, to []netip.Addr) (out []pod) {
	for i := range pods {
		p := pod{name: fmt.Sprint(group, "-", i), node: []sandbox.Member{g.c.nodes[0], g.c.nodes[2]}[i%2],
			labels: g.in(group).MatchLabels}
		for j, ip := range to {
			port := g.port + (i+j)%pods*(connections+3)
			for kind, count := range map[string]int{"client": connections, "server": 2, "udp": 1} {
				if j > 0 {
					count = min(count, 5)
				}
				p.keeps = append(p.keeps, keeps{count, ip, kind, port})
				port += count
				g.want[ofFamily(ips, ip)[0]] += count
			}
		}
		out = append(out, p)
	}
	return out
}

// own are the connections by these addresses: pods of a former test may still send.
func (g *goingOn) own() map[string]line {
	all := g.k.now()
	maps.DeleteFunc(all, func(_ string, l line) bool { return g.want[l.source] == 0 })
	return all
}

// complete is nil if all connections are there, and no others.
func (g *goingOn) complete() error {
	have := map[netip.Addr]int{}
	for _, l := range g.own() {
		have[l.source]++
	}
	if !maps.Equal(have, g.want) {
		return fmt.Errorf("connections by source: %v, want %v", have, g.want)
	}
	return nil
}

// goOn waits until all connections go on; after an outage TCP on a busy machine tries again as much later as that took.
func (g *goingOn) goOn(when string) {
	g.Helper()
	g.k.liveWithin(notReadyTimeout, when, slices.Collect(maps.Keys(g.own())))
	if err := g.complete(); err != nil {
		g.Errorf("%s: %v", when, err)
	}
}
