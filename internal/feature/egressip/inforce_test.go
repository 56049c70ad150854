package egressip_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/feature/egressip"
)

// InForce is True where every family of the spec is in force; else it names what selected pods leave with over each, as
// Fallback does.
func TestInForceSpeaksOfEveryFamily(t *testing.T) {
	const (
		both   = "selected pods leave over IPv4 and IPv6 with an egress IP or not at all"
		v4     = "selected pods leave over IPv4 with an egress IP or not at all"
		await6 = "; no node holds an IPv6 address of it yet: "
		lack6  = "; no IPv6 address of it has a node: "
		open6  = "selected pods leave over IPv6 with their node's address"
		drop6  = "what selected pods send outside over IPv6 is dropped"
		none   = "no node holds an IPv4 and IPv6 address of it yet: selected pods leave over IPv4 and IPv6 with " +
			"their node's address until one does"
	)
	for name, c := range map[string]struct {
		ips, held      []string
		drop           bool
		want, fallback string
	}{
		"both": {ips: []string{"172.18.0.33", "fd00:18::33"}, held: []string{"172.18.0.33", "fd00:18::33"},
			want: "True Held: " + both, fallback: "False"},
		"neither": {ips: []string{"172.18.0.33", "fd00:18::33"}, want: "False NotHeld: " + none,
			fallback: "False"},
		"one held": {ips: []string{"172.18.0.33", "fd00:18::33"}, held: []string{"172.18.0.33"},
			want: "False NotHeld: " + v4 + await6 + open6 + " until one does", fallback: "False"},
		"one held, drop": {ips: []string{"172.18.0.33", "fd00:18::33"}, held: []string{"172.18.0.33"}, drop: true,
			want: "False NotHeld: " + v4 + await6 + drop6 + " until one does", fallback: "False"},
		"one hosted": {ips: []string{"172.18.0.33", "fd00:99::33"}, held: []string{"172.18.0.33"},
			want: "False PartiallyAssigned: " + v4 + lack6 + open6, fallback: "True"},
		"one hosted,drop": {ips: []string{"172.18.0.33", "fd00:99::33"}, held: []string{"172.18.0.33"}, drop: true,
			want: "False PartiallyAssigned: " + v4 + lack6 + drop6, fallback: "True"},
		"one asked for": {ips: []string{"172.18.0.33"}, held: []string{"172.18.0.33"}, want: "True Held: " + v4,
			fallback: "False"},
		"none asked for": {want: "False InvalidEgressIP: it has no address that can be hosted: selected pods leave " +
			"with their node's address", fallback: "True"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.SetNode(node("n1", 2, "172.18.0.2/24", "fd00:18::2/64"))
			e := object("e", 0, c.ips...)
			e.DropWhenUnassigned = c.drop
			w.SetEgressIP(e)
			hold(w, "n1", map[string][]netip.Addr{"e": object("", 0, c.held...).IPs})
			d := settle(w)["e"]
			have := conditionOf(d, egressip.ConditionInForce)
			if have := have.Status + " " + have.Reason + ": " + have.Message; have != c.want {
				t.Errorf("have %s\nwant %s", have, c.want)
			}
			if have := conditionOf(d, egressip.ConditionFallback); have.Status != c.fallback {
				t.Errorf("Fallback: %+v", have)
			}
		})
	}
}
