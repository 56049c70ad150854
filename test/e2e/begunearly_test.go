package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// earlyPort is the node port of a Service that clients ask for before it is there.
const earlyPort = 31955

// begunEarly: clients that send to a node port from one port, without a pause, before there is a Service, and before it
// has an endpoint, are answered once there is one, on whatever node it is.
func begunEarly(t *testing.T, n *namespace) {
	var all []*asking
	for _, node := range n.c.nodes {
		for _, ip := range node.IPs {
			all = append(all, asks(t, n.c.hosts[0].Name, netip.AddrPortFrom(ip, earlyPort)))
		}
	}
	for _, ip := range n.c.nodes[2].IPs {
		for _, node := range n.c.nodes {
			all = append(all, asks(t, node.Name, netip.AddrPortFrom(ip, earlyPort)))
		}
	}
	early := func(s *corev1.ServiceSpec) { s.Ports[1].NodePort = earlyPort }
	for i := range 5 {
		s := n.balances(fmt.Sprint("begun-early-", i), 155, early)
		for range 2 {
			within(t, programmed, func() error { return nobodyAnswers(all) })
			s.goesTo("one")
			for _, a := range all {
				within(t, programmed, func() error {
					if a.answered.Load() == 0 {
						return fmt.Errorf("%s does not answer %s, who was there before the endpoint", a.to, a.from)
					}
					return nil
				})
			}
			s.goesTo()
		}
		if err := n.c.api.CoreV1().Services(n.name).Delete(t.Context(), s.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		within(t, programmed, func() error { return nobodyAnswers(all) })
	}
}

// asking is a client that sends datagrams from one port, without a pause.
type asking struct {
	from     string // the host
	to       netip.AddrPort
	answered atomic.Int64
}

// nobodyAnswers is nil if nothing is answered for a while.
func nobodyAnswers(all []*asking) error {
	for _, a := range all {
		a.answered.Store(0)
	}
	time.Sleep(300 * time.Millisecond) // each has asked sixty times
	for _, a := range all {
		if a.answered.Load() > 0 {
			return fmt.Errorf("%s answers, and there is no endpoint", a.to)
		}
	}
	return nil
}

// asks has a host ask until the test ends.
func asks(t *testing.T, host string, to netip.AddrPort) *asking {
	t.Helper()
	a := &asking{from: host, to: to}
	var conn *net.UDPConn
	err := sandbox.InNetns(host, func() (err error) {
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		for t.Context().Err() == nil {
			_, _ = conn.Write([]byte("hostname")) // what is refused is asked again
			time.Sleep(5 * time.Millisecond)
		}
	}()
	go func() {
		answer := make([]byte, 256)
		for t.Context().Err() == nil {
			if _, err := conn.Read(answer); err == nil {
				a.answered.Add(1)
			}
		}
	}()
	return a
}
