package egressip_test

import (
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// TestUnselectedNodeLeaves: a node that no longer matches translates until its successor holds the address and no node
// steers to it; that it matches again meanwhile moves nothing back.
func TestUnselectedNodeLeaves(t *testing.T) {
	const ip = "172.18.0.33"
	old, now := world.Assignment{Node: "n3", IP: addr(ip)}, world.Assignment{Node: "n2", IP: addr(ip)}
	w := newWorld()
	inZones(w)
	e := object("e", 0, ip)
	e.Nodes = nodesBy("zone=b")
	w.SetEgressIP(e)
	settle(w)
	report(w, "n3", ip)
	report(w, "n1", "", old)
	settle(w)
	zoned(w, "n2", "b")
	zoned(w, "n3", "a")
	for i, x := range []struct {
		name    string
		change  func()
		leaving string
	}{
		{"the successor does not hold it yet", func() {}, "n3=" + ip},
		{"the former one matches again", func() { zoned(w, "n3", "b") }, "n3=" + ip},
		{"and does not", func() { zoned(w, "n3", "a") }, "n3=" + ip},
		{"a node steers to the former one", func() { report(w, "n2", ip) }, "n3=" + ip},
		{"none does", func() { report(w, "n1", "", now) }, ""},
		{"the former one matches again, as another", func() { zoned(w, "n3", "b") }, ""},
	} {
		x.change()
		all := decideAt(w, time.Unix(1000+int64(i), 0))
		write(w, all)
		d := all["e"]
		if items(d) != "n2="+ip || leaving(d) != x.leaving || !d.InForce[world.V4] {
			t.Errorf("%s: on %q, leaving %q, want %q; in force %v", x.name, items(d), leaving(d), x.leaving, d.InForce)
		}
	}
}

// TestUnselectedNodeWithoutSuccessor: what no other node that matches can take is given up within three seconds; the
// last address at once, and the conditions name the selector. It is given to the first node that matches.
func TestUnselectedNodeWithoutSuccessor(t *testing.T) {
	w := newWorld()
	inZones(w)
	e := object("e", 0, "172.18.0.33", "172.18.0.34")
	e.Nodes = nodesBy("zone=a")
	w.SetEgressIP(e)
	settle(w)
	report(w, "n1", "172.18.0.33")
	report(w, "n2", "172.18.0.34")
	settle(w)
	const so = "so that spec.egressNodeSelector (zone=a) matches it"
	for _, x := range []struct {
		name           string
		at             int64
		change         func()
		items, leaving string
		says           string // condition Assigned
	}{
		{"one of two matches no more", 0, func() { zoned(w, "n2", "c") }, "n1=172.18.0.33", "n2=172.18.0.34",
			so},
		{"three seconds later", 3, func() {}, "n1=172.18.0.33", "", so},
		{"none matches", 4, func() { zoned(w, "n1", "c") }, "", "",
			"spec.egressNodeSelector (zone=a) matches no egress node"},
		{"another does", 5, func() { zoned(w, "n3", "a") }, "n3=172.18.0.33", "", "172.18.0.34"},
	} {
		x.change()
		all := decideAt(w, time.Unix(1000+x.at, 0))
		write(w, all)
		d := all["e"]
		if items(d) != x.items || leaving(d) != x.leaving {
			t.Errorf("%s: on %q, leaving %q; want %q, %q", x.name, items(d), leaving(d), x.items, x.leaving)
		}
		if c := conditionOf(d, "Assigned"); !strings.Contains(c.Message, x.says) {
			t.Errorf("%s: Assigned: %+v", x.name, c)
		}
		none := x.items == ""
		if c := conditionOf(d, "Fallback"); none != (c.Reason == egressip.ReasonNodeIP) || none && d.InForce[world.V4] {
			t.Errorf("%s: in force %v, Fallback %+v", x.name, d.InForce, c)
		}
	}
}
