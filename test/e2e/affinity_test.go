package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// firstOfAffinity: the first connection of each client of a Service with session affinity is answered as any other, by
// pods and from outside, and the client stays where it went.
func firstOfAffinity(t *testing.T, n *namespace) {
	s := n.balances("affine", 160, func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP },
		"one", "two")
	n.from("client").to(s.cluster).stays() // it is programmed there
	n.c.from(t, n.c.hosts[0]).to(s.on(n.c.nodes[2])).stays()
	for i := range 4 {
		name := fmt.Sprint("new-", i)
		n.runs(pod{name: name, node: n.c.nodes[2]})
		n.from(name).to(s.cluster).firstAnswered()
	}
	for i := range 4 {
		for _, ip := range n.c.number(200 + i) {
			n.c.lends(t, n.c.hosts[0].Name, ip)
			at := numberedOf(n.c.nodes[2].IPs, ip.Is4())[0]
			_, err := fetch(t.Context(), clientAs(n.c.hosts[0].Name, ip), url(at, s.nodePort, "/hostname"))
			if err != nil {
				t.Errorf("the first connection of %s to %s: %v", ip, s.name, err)
			}
		}
	}
}

// firstAnswered says that the first connection to each address is answered, without another try.
func (f fromTo) firstAnswered() {
	f.t.Helper()
	began := time.Now()
	if answers, err := f.answers(1); err != nil {
		f.t.Errorf("the first connection of %s to %s: %v, %v after %s", f.from.from.name, f.to.name, answers, err,
			time.Since(began))
	}
}

// lends gives a host outside one more address until the test ends.
func (c *cluster) lends(t *testing.T, host string, ip netip.Addr) {
	t.Helper()
	address := ip.String() + map[bool]string{true: "/16", false: "/64"}[ip.Is4()]
	nodad := map[bool]string{false: " nodad"}[ip.Is4()]
	c.on(t, host, "sh", "-c", "ip addr add "+address+" dev eth0"+nodad)
	t.Cleanup(func() { _, _ = c.feed(context.Background(), host, nil, "ip", "addr", "del", address, "dev", "eth0") })
}
