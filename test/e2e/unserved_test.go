package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/mdlayher/packet"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

// unserved: cluster IPs that no Service has, and ports that its Service has not, are refused to pods with an egress IP
// and without, and to hosts. No such packet leaves a node.
func unserved(t *testing.T, n *namespace) {
	c := n.c
	c.labelEgress(t, c.nodes[1])
	e := c.egressIP(t, "unserved", c.number(78)[:1], n.itself(), selects(web))
	e.ready()
	s := n.balances("unserved", 180, nil, "two")
	n.from("one").to(s.cluster).answeredBy("two")
	port, nobody := s.cluster, s.cluster
	port.name, port.port = "a port that the Service has not", 81
	nobody.name, nobody.ips = "a cluster IP that no Service has", nil
	for _, ip := range s.cluster.ips {
		last := ip.AsSlice()
		last[len(last)-2], last[len(last)-1] = 250, 250
		unused, _ := netip.AddrFromSlice(last)
		nobody.ips = append(nobody.ips, unused)
	}
	seen := c.seesTo(t, slices.Concat(s.cluster.ips, nobody.ips))
	for _, to := range []endpoint{port, nobody} {
		for _, pod := range []string{"one", "client"} {
			n.from(pod).to(to).refused()
		}
		for _, node := range c.nodes[:2] {
			c.from(t, node).to(to).refused()
			for _, ip := range to.ips {
				answer, err := datagram(node.Name, netip.AddrPort{}, netip.AddrPortFrom(ip, 81), "anybody")
				if !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("a datagram of %s to %s: %q, %v; want connection refused", node.Name, ip, answer, err)
				}
				if out, err := c.feed(t.Context(), node.Name, nil, "ping", "-c1", "-W2", ip.String()); err == nil {
					t.Errorf("%s: ping %s is answered: %s", node.Name, ip, out)
				}
			}
		}
	}
	c.routed(t, c.hosts[0], c.nodes[0], nobody)
	_, _ = datagram(c.hosts[0].Name, netip.AddrPort{}, netip.AddrPortFrom(nobody.ips[0], 81), "seen?")
	if from := seen(c.hosts[0].IPs); len(from) > 0 {
		t.Errorf("packets to cluster IPs left nodes, from %v", from)
	}
	e.delete()
}

// seesTo counts what passes the nodes' network with one of these destinations from now on. The function that it returns
// says from whom, but for these sources, of which something must have been seen.
func (c *cluster) seesTo(t *testing.T, to []netip.Addr) func(sources []netip.Addr) []netip.Addr {
	t.Helper()
	var conn *packet.Conn
	err := sandbox.InNetns(c.FabricNetns(), func() (err error) {
		conn, err = traffic.ListenAll(c.FabricBridge())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan netip.Addr, 10000)
	go func() {
		defer close(found)
		frame := make([]byte, 2048)
		for {
			size, _, err := conn.ReadFrom(frame)
			if err != nil {
				return
			}
			if from, dst, is := traffic.Ends(frame[:size]); is && slices.Contains(to, dst) {
				found <- from
			}
		}
	}()
	return func(sources []netip.Addr) []netip.Addr {
		time.Sleep(200 * time.Millisecond) // what was sent last passes
		conn.Close()
		var own bool
		var others []netip.Addr
		for from := range found {
			if slices.Contains(sources, from) {
				own = true
			} else if !slices.Contains(others, from) {
				others = append(others, from)
			}
		}
		if !own {
			t.Error(fmt.Errorf("the capture saw nothing of %v, which sent", sources))
		}
		return others
	}
}
