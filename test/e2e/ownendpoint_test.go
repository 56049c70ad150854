package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
)

// ownEndpoint: a process of a host asks a Service whose endpoint is on the very host: it gets an answer by UDP, too, by
// every address, and the server sees the address that it is asked at, not one of another link's.
func ownEndpoint(t *testing.T, n *namespace) {
	node := n.c.nodes[0]
	s := n.balances("own-endpoint", 150, nil, node.Name)
	echoIn(t, node.Name, udpPort)
	udp := uint16(n.c.service(t, n.name, s.name).Spec.Ports[1].NodePort)
	n.c.from(t, node).to(s.cluster).answeredBy(node.Name)
	n.c.from(t, node).to(s.cluster).arrivesAs(node.IPs...)
	var asked []netip.AddrPort
	for _, ip := range s.cluster.ips {
		asked = append(asked, netip.AddrPortFrom(ip, 80))
	}
	for _, ip := range append(node.IPs[:len(node.IPs):len(node.IPs)], node.Secondary[0]...) {
		asked = append(asked, netip.AddrPortFrom(ip, udp))
	}
	for _, to := range asked {
		within(t, programmed, func() error {
			answer, err := datagram(node.Name, netip.AddrPort{}, to, "anybody")
			if from, bad := netip.ParseAddrPort(answer); err != nil || bad != nil || !has(node.IPs, from.Addr()) {
				return fmt.Errorf("a datagram of node %s to %s, for its own host: %q, %v; want its address", node.Name, to,
					answer, err)
			}
			return nil
		})
	}
}

func has(ips []netip.Addr, a netip.Addr) bool {
	for _, ip := range ips {
		if ip == a.Unmap() {
			return true
		}
	}
	return false
}

// echoIn answers datagrams to a port, at whatever address, with who asks, until the test ends.
func echoIn(t *testing.T, namespace string, port int) {
	t.Helper()
	var conn net.PacketConn
	err := sandbox.InNetns(namespace, func() (err error) {
		conn, err = net.ListenPacket("udp", net.JoinHostPort("", strconv.Itoa(port)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		question := make([]byte, 2048)
		for {
			_, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo([]byte(from.String()), from)
		}
	}()
}
