package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// TestEgressServiceBefore: pods that an EgressIP and an EgressService both select leave as the EgressService says. So
// they do with policy Local, where clients are seen as they are and only the host's pods answer. The host follows the
// endpoints. Pods that are no longer behind the Service leave with the EgressIP, as do all without the EgressService.
func TestEgressServiceBefore(t *testing.T) {
	c := theCluster(t)
	c.labelEgress(t, c.nodes[2])
	seen := c.capture(t)
	s := newBehindService(t, 210, v1.EgressServiceSpec{NodeSelector: selectsWhere("kubernetes.io/hostname", "In",
		c.nodes[0].Name, c.nodes[1].Name)})
	service, egress := s.b.balancer.ips, c.number(238)
	s.hostIs(c.nodes[0].Name, soon)
	s.readyOn(c.nodes[0].Name)
	e := c.egressIP(t, s.n.name, egress, s.n.itself(), selects(web))
	e.readyOn(c.nodes[2])
	s.leave(behindPods, service)

	s.patchService(`{"spec":{"externalTrafficPolicy":"Local"}}`)
	s.isAnsweredAt(0)
	s.leave(behindPods, service)
	s.b.goesTo("b")
	s.hostIs(c.nodes[1].Name, soon)
	s.readyOn(c.nodes[1].Name)
	s.isAnsweredAt(1)
	s.leave([]string{"b"}, service)
	s.leave([]string{"a", "c"}, egress, service...)

	s.deletes()
	s.leave(behindPods, egress, service...)
	within(t, soon, func() error { return seen.leaving(s.n, egress) })
	seen.eachItsOwn(s.n)
}

// leave says that pods soon leave with these addresses; formerly with others.
func (s behindService) leave(pods []string, ips []netip.Addr, before ...netip.Addr) {
	s.Helper()
	for _, p := range pods {
		s.n.from(p).to(s.c.outside(0)).formerly(before...).soonArrivesAs(ips...)
	}
}

// isAnsweredAt says that a host outside is answered by the pod of a node alone, which sees its address.
func (s behindService) isAnsweredAt(node int) {
	s.Helper()
	client := s.c.hosts[0]
	asks := s.c.from(s.T, client).to(s.b.balancer)
	asks.answeredBy(behindPods[node])
	within(s.T, soon, func() error { return asks.check(client.IPs) })
	asks.answeredBy(behindPods[node])
}

// TestEgressServicesSpread: of several EgressServices each node is the host of one, and each pod leaves with the
// address of its own.
func TestEgressServicesSpread(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	seen := c.capture(t)
	hosts := map[string]string{}
	var all []behindService
	for i, p := range behindPods {
		n.runs(pod{name: p, node: c.nodes[i], labels: web, sends: true})
		s := behindService{egressService: egressService{t, c, n.name, "of-" + p}, n: n}
		s.b = n.balances(s.name, 214+2*i, nil, p)
		s.creates(v1.EgressServiceSpec{})
		within(t, soon, func() error {
			o, err := s.get()
			if err == nil {
				err = s.readyAt(orElse(o.Status.Host, "a node"))
			}
			hosts[s.name] = o.Status.Host
			return err
		})
		s.readyOn(hosts[s.name])
		all = append(all, s)
	}
	if len(map[string]bool{hosts["of-a"]: true, hosts["of-b"]: true, hosts["of-c"]: true}) != 3 {
		t.Errorf("hosts are %v, want three", hosts)
	}
	for i, s := range all {
		s.leave(behindPods[i:i+1], s.b.balancer.ips, c.nodes[i].IPs...)
		c.from(t, c.hosts[0]).to(s.b.balancer).answeredBy(behindPods[i])
	}
	seen.flowing(c, n, behindPods, time.Now(), soon)
	seen.eachItsOwn(n)
}

// TestEgressServiceTwoNetworks: two EgressServices have a network each, and their pods on one node leave by different
// links of it to the same address outside.
func TestEgressServiceTwoNetworks(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	node := c.nodes[1]
	for i, p := range []string{"first", "second"} {
		table, dev := fmt.Sprint(4250+i), fmt.Sprint("eth", i+1)
		for _, m := range c.nodes {
			c.leadsBy(t, m, dev, table, c.hosts[0].Secondary[i])
		}
		n.runs(pod{name: p, node: node, labels: web})
		s := behindService{egressService: egressService{t, c, n.name, p}, n: n}
		s.b = n.balances(p, 220+2*i, nil, p)
		s.creates(v1.EgressServiceSpec{SourceIPBy: v1.SourceIPNetwork, Network: table})
		s.isReadyOn("ALL")
	}
	for range 2 {
		for i, p := range []string{"first", "second"} {
			n.from(p).to(c.outside(0)).formerly(node.IPs...).soonArrivesAs(node.Secondary[i]...)
		}
	}
}

// leadsBy gives a node a routing table with default routes by a link, until the test ends.
func (c *cluster) leadsBy(t *testing.T, m sandbox.Member, dev, table string, via []netip.Addr) {
	t.Helper()
	for _, ip := range via {
		flag := map[bool]string{true: "-4", false: "-6"}[ip.Is4()]
		c.on(t, m.Name, "ip", flag, "route", "replace", "default", "via", ip.String(), "dev", dev, "table", table)
		t.Cleanup(func() {
			_, _ = c.feed(context.Background(), m.Name, nil, "ip", flag, "route", "flush", "table", table)
		})
	}
}
