package e2e

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
)

// onLink is its node port on one node, at the addresses of the node's second link.
func (b balanced) onLink(node sandbox.Member) endpoint {
	return endpoint{fmt.Sprintf("node port of %s on %s of %s", b.name, link, node.Name), node.Secondary[0], b.nodePort}
}

// secondLink: a node port with policy Local, reached by a link beside the primary network. Pods see the client, also
// one that an egress IP serves, and their answers go back by that link. A node without a pod refuses.
func secondLink(t *testing.T, n *namespace) {
	node, client := n.c.nodes[0], n.c.hosts[0]
	s := n.balances("second-link", 180, local, "one")
	outside := n.c.from(t, client)
	n.answersByLink(t, s)
	outside.to(s.onLink(n.c.nodes[1])).refused()
	outside.to(s.on(node)).answeredBy("one") // by the primary network, as before
	outside.to(s.on(node)).arrivesAs(client.IPs...)

	n.c.labelEgress(t, n.c.nodes[1])
	ips := n.c.number(71)
	e := n.c.egressIP(t, "second-link", ips, n.itself(), selects(web))
	e.ready()
	n.from("one").to(n.c.outside(0)).soonArrivesAs(ips...)
	n.answersByLink(t, s)
	outside.to(s.on(node)).arrivesAs(client.IPs...)
	e.delete()

	s.goesTo("two") // the way out: nobody is left here
	outside.to(s.onLink(node)).refused()
	outside.to(s.onLink(n.c.nodes[1])).answeredBy("two")
	outside.to(s.onLink(n.c.nodes[1])).arrivesAs(client.Secondary[0]...)
}

// answersByLink: the pod answers the client's own addresses on the second network, by TCP and by UDP.
func (n *namespace) answersByLink(t *testing.T, s balanced) {
	t.Helper()
	node, client := n.c.nodes[0], n.c.hosts[0]
	f := n.c.from(t, client).to(s.onLink(node))
	f.answeredBy("one")
	f.arrivesAs(client.Secondary[0]...)
	udp := uint16(n.c.service(t, n.name, s.name).Spec.Ports[1].NodePort)
	for _, ip := range node.Secondary[0] {
		within(t, programmed, func() error {
			answer, err := datagram(client.Name, netip.AddrPort{}, netip.AddrPortFrom(ip, udp), "clientip")
			from, bad := netip.ParseAddrPort(answer)
			if err != nil || bad != nil || !has(client.Secondary[0], from.Addr()) {
				return fmt.Errorf("a datagram to %s: %q, %v; want the client's address", ip, answer, err)
			}
			return nil
		})
	}
}
