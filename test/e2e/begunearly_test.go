package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// earlyPort and linkPort are node ports of Services that clients ask for before they are there. They are below those
// that the API server gives to Services that name none (30086 and up), or now and then another Service has one.
const (
	earlyPort = 30055
	linkPort  = 30056
)

// begunEarly: clients that send to a node port from one port, without a pause, before there is a Service, and before it
// has an endpoint, are answered once there is one, on whatever node it is.
func begunEarly(t *testing.T, n *namespace) {
	var all []*asking
	for _, node := range n.c.nodes {
		for _, ip := range node.IPs {
			all = append(all, asks(t, n.c.hosts[0].Name, netip.AddrPortFrom(ip, earlyPort), "hostname"))
		}
	}
	for _, ip := range n.c.nodes[2].IPs {
		for _, node := range n.c.nodes {
			all = append(all, asks(t, node.Name, netip.AddrPortFrom(ip, earlyPort), "hostname"))
		}
	}
	early := func(s *corev1.ServiceSpec) { s.Ports[1].NodePort = earlyPort }
	services := 2
	if fullMatrix() {
		services = 5
	}
	for i := range services {
		s := n.balances(fmt.Sprint("begun-early-", i), 155, early)
		for range 2 {
			within(t, programmed, func() error { return nobodyAnswers(all) })
			s.goesTo("one")
			allAreAnswered(t, all)
			s.goesTo()
		}
		if err := n.c.api.CoreV1().Services(n.name).Delete(t.Context(), s.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		within(t, programmed, func() error { return nobodyAnswers(all) })
	}
}

// begunByLink: the same by a link beside the primary network, where the Service has policy Local: its pod sees the
// client, and no client is left with an answer when the endpoint goes, or the Service.
func begunByLink(t *testing.T, n *namespace) {
	c := n.c
	var all []*asking
	for _, ip := range c.nodes[0].Secondary[0] {
		all = append(all, asks(t, c.hosts[0].Name, netip.AddrPortFrom(ip, linkPort), "clientip"))
	}
	seen := func() {
		t.Helper()
		allAreAnswered(t, all)
		for _, a := range all {
			text, _ := a.last.Load().(string)
			from, err := netip.ParseAddrPort(text)
			if err != nil || !slices.Contains(c.hosts[0].Secondary[0], from.Addr().Unmap()) {
				t.Errorf("the pod behind %s sees %q, want one of %s", a.to, text, c.hosts[0].Secondary[0])
			}
		}
	}
	for i := range 2 {
		s := n.balances(fmt.Sprint("begun-by-link-", i), 162, func(s *corev1.ServiceSpec) {
			local(s)
			s.Ports[1].NodePort = linkPort
		})
		for range 2 {
			within(t, programmed, func() error { return nobodyAnswers(all) })
			s.goesTo("one")
			seen()
			s.goesTo()
		}
		s.goesTo("one")
		seen()
		must(t, c.api.CoreV1().Services(n.name).Delete(t.Context(), s.name, metav1.DeleteOptions{}))
		within(t, programmed, func() error { return nobodyAnswers(all) })
	}
}

// asking is a client that sends datagrams from one port, without a pause.
type asking struct {
	from     string // the host
	to       netip.AddrPort
	answered atomic.Int64
	last     atomic.Value // a string: the latest answer
}

// allAreAnswered waits until each client has had an answer.
func allAreAnswered(t *testing.T, all []*asking) {
	t.Helper()
	for _, a := range all {
		within(t, programmed, func() error {
			if a.answered.Load() == 0 {
				return fmt.Errorf("%s does not answer %s, who was there before the endpoint", a.to, a.from)
			}
			return nil
		})
	}
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

// asks has a host ask a question of test servers until the test ends.
func asks(t *testing.T, host string, to netip.AddrPort, question string) *asking {
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
			_, _ = conn.Write([]byte(question)) // what is refused is asked again
			time.Sleep(5 * time.Millisecond)
		}
	}()
	go func() {
		answer := make([]byte, 256)
		for t.Context().Err() == nil {
			if n, err := conn.Read(answer); err == nil {
				a.last.Store(string(answer[:n]))
				a.answered.Add(1)
			}
		}
	}()
	return a
}
