package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTakesOver: an EgressIP in force whose spec names an address that another has just given up sends nothing until
// that one's node has let go of it. None of its pods' packets has a node's address, nor those of the other, which gets
// another address.
func TestTakesOver(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	c.labelEgress(t, c.nodes...)
	n, m := c.namespace(t, nil), c.namespace(t, nil)
	for j, node := range c.nodes {
		n.runs(pod{name: fmt.Sprint("p", j), node: node, sends: true})
		m.runs(pod{name: fmt.Sprint("p", j), node: node, sends: true})
	}
	seen := c.capture(t)
	for i, way := range []struct {
		name    string
		givesUp func(other egressIP)
	}{
		{"changed", func(other egressIP) { other.replace(c.number(181), c.number(182)) }},
		{"deleted", func(other egressIP) { other.delete() }},
	} {
		t.Run(way.name, func(t *testing.T) {
			e := c.egressIP(t, fmt.Sprint("takes-over-", i), c.number(180), n.itself(), metav1.LabelSelector{})
			other := c.egressIP(t, fmt.Sprint("gives-up-", i), c.number(181), m.itself(), metav1.LabelSelector{})
			e.ready()
			other.ready()
			within(t, soon, func() error { return seen.leaving(n, c.number(180)) })
			within(t, soon, func() error { return seen.leaving(m, c.number(181)) })
			seen.Forget()
			begin := time.Now()
			way.givesUp(other)
			e.replace(c.number(180), c.number(181))
			within(t, soon, func() error { return seen.leaving(n, c.number(181)) })
			t.Logf("took over after %s", time.Since(begin).Round(time.Millisecond))
			seen.eachItsOwn(n)
			if other.exists() {
				within(t, soon, func() error { return seen.leaving(m, c.number(182)) })
				seen.eachItsOwn(m)
			}
		})
	}
	t.Run("exchanged", func(t *testing.T) {
		older := &party{c.egressIP(t, "exchange-older", c.number(180), n.itself(), metav1.LabelSelector{}), n, 180}
		older.ready()
		younger := &party{c.egressIP(t, "exchange-younger", c.number(181), m.itself(), metav1.LabelSelector{}), m, 181}
		younger.ready()
		c.exchange(t, seen, older, younger)
		c.exchange(t, seen, younger, older)
	})
}

// party is an EgressIP with the pods that it serves, and the number of its addresses.
type party struct {
	egressIP
	pods   *namespace
	number int
}

// exchange gives each what the other has, by two writes with a decision between them.
func (c *cluster) exchange(t *testing.T, seen *capture, first, second *party) {
	t.Helper()
	both := []*party{first, second}
	for _, p := range both {
		within(t, soon, func() error { return seen.leaving(p.pods, c.number(p.number)) })
	}
	seen.Forget()
	first.replace(c.number(first.number), c.number(second.number))
	within(t, soon, func() error { return first.without(c.number(first.number)) })
	second.replace(c.number(second.number), c.number(first.number))
	first.number, second.number = second.number, first.number
	for _, p := range both {
		within(t, soon, func() error { return seen.leaving(p.pods, c.number(p.number)) })
	}
	for _, p := range both {
		seen.eachItsOwn(p.pods)
	}
}

// without is nil if the status gives none of these addresses to a node.
func (p *party) without(ips []netip.Addr) error {
	for ip, node := range p.items() {
		if slices.Contains(ips, netip.MustParseAddr(ip)) {
			return fmt.Errorf("%s is still on %s", ip, node)
		}
	}
	return nil
}
