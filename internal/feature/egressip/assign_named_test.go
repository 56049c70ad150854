package egressip_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// wide are three egress nodes of one primary network; n1 and n2 have a secondary network inside it, too.
func wide(w *world.World) {
	for i := 1; i <= 3; i++ {
		n := node(fmt.Sprint("n", i), i+1, fmt.Sprintf("172.18.0.%d/16", i+1))
		if i < 3 {
			n.CIDRs = append(n.CIDRs, netip.MustParsePrefix(fmt.Sprintf("172.18.5.%d/24", i)))
		}
		w.SetNode(n)
	}
}

// lie is what n3 says of its networks.
type lie struct {
	primary netip.Prefix
	cidrs   []netip.Prefix
	faults  map[netip.Prefix]string
}

func (l lie) tell(w *world.World) {
	n := node("n3", 4, l.primary.String())
	n.CIDRs = append(n.CIDRs, l.cidrs...)
	w.SetNode(n)
	w.SetHolding(&world.Holding{Node: "n3", BootID: "boot", Faults: l.faults})
}

// contested are addresses that n1 and n2 can host, whatever n3 says: in the primary network, at the ends of its parts,
// and in the secondary one.
var contested = []string{"172.18.0.32", "172.18.0.33", "172.18.0.63", "172.18.0.64", "172.18.0.127", "172.18.5.33",
	"172.18.5.64", "172.18.5.127", "172.18.6.1"}

func drawLie(t *rapid.T) lie {
	length := func(of string) int { return rapid.IntRange(8, 31).Draw(t, of) }
	near := func(of string) netip.Prefix {
		return netip.PrefixFrom(addr(rapid.SampledFrom([]string{"172.18.0.47", "172.18.0.97", "172.18.5.47",
			"172.18.5.97", "172.18.6.3"}).Draw(t, of)), length(of))
	}
	l := lie{primary: netip.PrefixFrom(addr("172.18.0.47"), 16), faults: map[netip.Prefix]string{}}
	if rapid.Bool().Draw(t, "of its primary network") {
		l.primary = near("primary")
	}
	for range rapid.IntRange(0, 4).Draw(t, "cidrs") {
		l.cidrs = append(l.cidrs, near("cidr"))
	}
	for range rapid.IntRange(0, 4).Draw(t, "faults") {
		l.faults[near("fault").Masked()] = "down"
	}
	return l
}

// TestOneWordTakesNothing: whatever n3 says of its networks, what n1 and n2 have stays, moves among the others when its
// node goes, and what is new gets a node; n3 gets no more than its share.
func TestOneWordTakesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, l := newWorld(), drawLie(t)
		wide(w)
		unlabel(w, "n3")
		ips := rapid.Permutation(contested).Draw(t, "addresses")
		for i, ip := range ips[:4] {
			w.SetEgressIP(object(fmt.Sprint("old", i), 10-i, ip))
		}
		before := settle(w)
		l.tell(w)
		for i, ip := range ips[4:] {
			w.SetEgressIP(object(fmt.Sprint("new", i), 5-i, ip))
		}
		load := map[string]int{}
		for name, d := range settle(w) {
			if len(d.Items) != 1 {
				t.Fatalf("%s has no node by n3's word: %+v", name, conditionOf(d, "Assigned"))
			}
			if old, is := before[name]; is && !slices.Equal(old.Items, d.Items) {
				t.Fatalf("%s moves by n3's word: %s becomes %s", name, items(old), items(d))
			}
			load[d.Items[0].Node]++
		}
		if load["n3"] > max(load["n1"], load["n2"]) {
			t.Fatalf("n3 draws addresses: %v", load)
		}
		unlabel(w, "n1")
		for name, d := range settle(w) {
			if len(d.Items) != 1 {
				t.Fatalf("%s has no node without n1: %+v", name, conditionOf(d, "Assigned"))
			}
		}
	})
}

// TestConditionNamesTheNode: what is refused by the word of one node says which node that is, and that nothing else
// says so.
func TestConditionNamesTheNode(t *testing.T) {
	w := newWorld()
	wide(w)
	w.SetNode(node("n4", 5, "172.30.0.4/24"))
	n3 := node("n3", 4, "172.18.0.4/16")
	n3.HostAddrs, n3.Record.Addrs = append(n3.HostAddrs, addr("172.18.0.90")), []netip.Addr{addr("172.18.0.4")}
	w.SetNode(n3)
	for ip, whose := range map[string]string{
		"172.18.0.4":   "an address of node n3: use",
		"172.18.0.90":  "an address of node n3 by its own word alone: use",
		"172.30.0.255": "the broadcast address of 172.30.0.0/24 of node n4: use",
		"172.18.0.0":   "the network address of 172.18.0.0/16: use",
	} {
		w.SetEgressIP(object("e", 0, ip))
		if c := conditionOf(decide(w)["e"], "Assigned"); !strings.HasPrefix(c.Message, ip+" is "+whose) {
			t.Errorf("%s: want %q in %+v", ip, whose, c)
		}
	}
}

// TestFaultOfOneWord: a problem that n3 reports of a network which it alone names keeps nobody from taking over, and
// ends nothing that is in force.
func TestFaultOfOneWord(t *testing.T) {
	w := newWorld()
	wide(w)
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	settle(w)
	hold(w, "n1", map[string][]netip.Addr{"e": {addr("172.18.0.33")}})
	settle(w)
	p := netip.MustParsePrefix("172.18.0.32/27")
	lie{primary: netip.MustParsePrefix("172.18.0.4/16"), faults: map[netip.Prefix]string{p: "down"}}.tell(w)
	unlabel(w, "n1")
	if d := settle(w)["e"]; items(d) != "n2=172.18.0.33" || !d.InForce[world.V4] {
		t.Errorf("have %s, in force %v: %+v", items(d), d.InForce, conditionOf(d, "Assigned"))
	}
}

// TestConfirmedNetwork: a secondary network inside the primary one, which one node alone names, decides once people
// confirm it; until then condition Assigned says what to do.
func TestConfirmedNetwork(t *testing.T) {
	w := newWorld()
	wide(w)
	n := node("n3", 4, "172.18.0.4/16")
	n.CIDRs = append(n.CIDRs, netip.MustParsePrefix("172.18.7.3/24"))
	w.SetNode(n)
	w.SetEgressIP(object("e", 0, "172.18.7.50"))
	const doubt = "172.18.7.50 is in 172.18.7.0/24 by the word of node n3 alone, and in 172.18.0.0/16 by other " +
		"egress nodes, which can host it, too: " +
		"if they should not, annotate node n3 egret.k8s.ovn.org/secondary-networks=172.18.7.0/24"
	d := settle(w)["e"]
	if c := conditionOf(d, "Assigned"); items(d) != "n1=172.18.7.50" || !strings.HasSuffix(c.Message, "; "+doubt) {
		t.Errorf("have %s: %+v", items(d), c)
	}
	if c := conditionOf(settle(w)["e"], "Assigned"); !strings.HasSuffix(c.Message, "; "+doubt) {
		t.Errorf("a second look: %+v", c)
	}
	w.DelEgressIP("e")
	w.SetEgressIP(object("e", 0, "172.18.7.50"))
	confirmed := *n
	confirmed.Confirmed = []netip.Prefix{netip.MustParsePrefix("172.18.7.0/24")}
	w.SetNode(&confirmed)
	d = settle(w)["e"]
	if c := conditionOf(d, "Assigned"); items(d) != "n3=172.18.7.50" || strings.Contains(c.Message, "alone") {
		t.Errorf("confirmed: have %s: %+v", items(d), c)
	}
	w.SetHolding(&world.Holding{Node: "n3", BootID: "boot",
		Faults: map[netip.Prefix]string{confirmed.Confirmed[0]: "down"}})
	if d = settle(w)["e"]; len(d.Items) != 0 || conditionOf(d, "Assigned").Reason != egressip.ReasonNoAssignableNode {
		t.Errorf("confirmed and at fault: %s: %+v", items(d), conditionOf(d, "Assigned"))
	}
}
