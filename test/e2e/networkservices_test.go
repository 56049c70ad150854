package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNetworkServices: connections from outside, from nodes and from pods to Services of a network beside the default
// one. Another network has the same addresses. Pod "one" is on the first node, "two" on the second, and nothing of the
// networks on the third.
func TestNetworkServices(t *testing.T) {
	c := theCluster(t)
	blue, red := c.tenant(t, "blue"), c.tenant(t, "red")
	blue.runs("one", "two")
	red.runs("three", "four")
	if blue.own["one"][0] != red.own["three"][0] {
		t.Fatalf("blue has %v and red %v: want the same addresses", blue.own, red.own)
	}
	c.hostServers(t)
	blue.each(part{"Cluster", networkCluster}, part{"Local", networkLocal}, part{"Hosts", networkHosts},
		part{"Affinity", networkAffinity}, part{"Datagrams", networkDatagrams})
	t.Run("Others", func(t *testing.T) {
		plain := c.namespace(t, nil)
		plain.runs(pod{name: "plain", node: c.nodes[0]})
		ofBlue, ofRed := blue.balances("blues", 60, nil, "one", "two"), red.balances("reds", 65, nil, "three", "four")
		for _, node := range c.nodes {
			c.from(t, c.hosts[0]).to(ofBlue.on(node)).answeredBy("one", "two")
			c.from(t, c.hosts[0]).to(ofRed.on(node)).answeredBy("three", "four")
		}
		for _, f := range []fromTo{plain.from("plain").to(ofBlue.cluster),
			plain.from("plain").to(ofBlue.on(c.nodes[0])),
			red.from("three").to(ofBlue.cluster), c.from(t, c.nodes[0]).to(ofBlue.cluster)} {
			f.refused()
		}
	})
	c.dropsNoRecirculated(t)
}

// networkCluster: any node serves, also one without a pod of the network, and pods do not see the client, whether they
// have an egress IP or not.
func networkCluster(t *testing.T, n *namespace) {
	s := n.balances("cluster", 10, nil, "one", "two")
	seen := func() {
		for i := range n.c.nodes {
			for _, to := range s.byAllWays(t, i) {
				f := n.c.from(t, n.c.hosts[0]).to(to)
				f.answeredBy("one", "two")
				seen, err := f.sources(2)
				if err != nil || slices.ContainsFunc(seen,
					func(a netip.Addr) bool { return slices.Contains(n.c.hosts[0].IPs, a) }) {
					t.Errorf("host outside to %s on node %d arrives as %v, %v", to.name, i, seen, err)
				}
			}
		}
	}
	seen()
	n.c.labelEgress(t, n.c.nodes[1])
	e := n.c.egressIP(t, "network-served", n.c.number(78), n.itself(), metav1.LabelSelector{})
	e.ready()
	seen()
	e.delete()
	for _, node := range n.c.nodes {
		for _, from := range n.c.nodes {
			n.c.from(t, from).to(s.on(node)).answeredBy("one", "two")
		}
		n.from("one").to(s.on(node)).answeredBy("one", "two")
	}
	for _, to := range []endpoint{s.cluster, s.balancer, s.external} {
		n.from("two").to(to).answeredBy("one", "two")
	}
}

// networkLocal: the node with the pod serves, and the pod sees the client, also where it has an egress IP; the others
// refuse.
func networkLocal(t *testing.T, n *namespace) {
	s := n.balances("local", 20, local, "one")
	outside := n.c.from(t, n.c.hosts[0])
	seen := func() {
		for _, to := range s.byAllWays(t, 0) {
			outside.to(to).answeredBy("one")
			outside.to(to).arrivesAs(n.c.hosts[0].IPs...)
		}
		for _, to := range s.byAllWays(t, 1) {
			outside.to(to).refused()
		}
		n.c.from(t, n.c.nodes[1]).to(s.on(n.c.nodes[0])).arrivesAs(n.c.nodes[1].IPs...)
		for _, node := range n.c.nodes {
			n.c.from(t, node).to(s.on(node)).answeredBy("one")
		}
	}
	seen()
	n.c.labelEgress(t, n.c.nodes[1])
	e := n.c.egressIP(t, "network-served", n.c.number(77), n.itself(), metav1.LabelSelector{})
	e.ready()
	seen()
	e.delete()
}

// networkHosts: hosts are endpoints, beside a pod.
func networkHosts(t *testing.T, n *namespace) {
	host := n.c.nodes[0].Name
	s, l := n.balances("hosts-cluster", 30, nil, "one", "two", host), n.balances("hosts-local", 40, local, "one", host)
	outside := n.c.from(t, n.c.hosts[0])
	for _, node := range n.c.nodes {
		outside.to(s.on(node)).answeredBy("one", "two", host)
	}
	outside.to(l.on(n.c.nodes[0])).answeredBy("one", host)
	outside.to(l.on(n.c.nodes[0])).arrivesAs(n.c.hosts[0].IPs...)
	outside.to(l.on(n.c.nodes[1])).refused()
	l.goesTo()
	outside.to(l.on(n.c.nodes[0])).refused()
}

// networkAffinity: a client stays with its endpoint, and two clients have different ones.
func networkAffinity(t *testing.T, n *namespace) {
	s := n.balances("sticky", 50, func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP },
		"one", "two")
	f := n.c.from(t, n.c.hosts[0]).to(s.on(n.c.nodes[0]))
	within(t, programmed, func() error {
		_, err := f.answers(1)
		return err
	})
	for _, ip := range f.to.ips {
		one := f
		one.to.ips = []netip.Addr{ip}
		who, err := one.answers(12)
		if err != nil || len(slices.Compact(who)) != 1 {
			t.Errorf("client to %s: %v answer, %v", ip, who, err)
		}
	}
}

// networkDatagrams: a client of UDP that goes on sending from one port follows the endpoints.
func networkDatagrams(t *testing.T, n *namespace) {
	for i, change := range []func(*corev1.ServiceSpec){nil, local} {
		s := n.balances(fmt.Sprint("datagrams-", i), 70+5*i, change, "one")
		port, node := uint16(n.c.service(t, n.name, s.name).Spec.Ports[1].NodePort), n.c.nodes[0]
		for _, endpoint := range []string{"one", node.Name, "one"} {
			if s.goesTo(endpoint); endpoint == node.Name {
				continue // which has no server for datagrams: the connection ends
			}
			for j, ip := range node.IPs {
				from := netip.AddrPortFrom(map[bool]netip.Addr{true: netip.IPv4Unspecified(),
					false: netip.IPv6Unspecified()}[ip.Is4()], uint16(21000+10*i+j))
				within(t, programmed, func() error {
					answer, err := datagram(n.c.hosts[0].Name, from, netip.AddrPortFrom(ip, port), "hostname")
					if err != nil || answer != endpoint {
						return fmt.Errorf("datagram to %s: %q, %v; want %s", ip, answer, err, endpoint)
					}
					return nil
				})
			}
		}
	}
}
