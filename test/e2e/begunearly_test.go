package e2e

import (
	"fmt"
	"net/netip"
	"testing"
)

// begunEarly: a client that sends to a node port from one port, again and again, before there is an endpoint, is
// answered once there is one, on whatever node it is, also though the client never pauses.
func begunEarly(t *testing.T, n *namespace) {
	s := n.balances("begun-early", 155, nil)
	udp := uint16(n.c.service(t, n.name, s.name).Spec.Ports[1].NodePort)
	n.c.from(t, n.c.hosts[0]).to(s.on(n.c.nodes[2])).refused() // it is there
	type client struct {
		who      string
		from, to netip.AddrPort
	}
	var clients []client
	for i, node := range n.c.nodes {
		for _, ip := range node.IPs {
			from := netip.AddrPortFrom(map[bool]netip.Addr{true: netip.IPv4Unspecified(),
				false: netip.IPv6Unspecified()}[ip.Is4()], uint16(21000+i))
			clients = append(clients, client{n.c.hosts[0].Name, from, netip.AddrPortFrom(ip, udp)})
		}
	}
	ask := func(c client) error {
		answer, err := datagram(c.who, c.from, c.to, "hostname")
		if err == nil && answer != "one" {
			err = fmt.Errorf("answered by %q", answer)
		}
		return err
	}
	for range 3 {
		for _, c := range clients {
			if ask(c) == nil {
				t.Fatalf("%s answers, and there is no endpoint", c.to)
			}
		}
	}
	s.goesTo("one")
	for _, c := range clients {
		within(t, programmed, func() error {
			if err := ask(c); err != nil {
				return fmt.Errorf("datagram of %s from %s to %s: %w", c.who, c.from, c.to, err)
			}
			return nil
		})
	}
}
