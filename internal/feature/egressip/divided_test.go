package egressip_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// TestNoNetworkComesAlone: the members of a large address set are the networks, and what is added to it for one more is
// never a single prefix, unless by a chance of one in as many as there are.
func TestNoNetworkComesAlone(t *testing.T) {
	const have, more = 1000, 100
	w := compiletest.Small("n1", world.SharedGateway)
	w.SetNamespace(&world.Namespace{Name: "ns0"})
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	e.Traffic = compiletest.TrafficSelector("a")
	w.SetEgressIP(e)
	var list []netip.Prefix
	for i := range have {
		list = append(list, netip.PrefixFrom(compiletest.V4(20, i>>6, i<<2&255, 0), 24))
	}
	before, alone := addressSet(t, w, list), 0
	for i := range more {
		list = append(list, netip.PrefixFrom(compiletest.V4(21, i>>6, i<<2&255, 0), 24))
		now := addressSet(t, w, list)
		added := 0
		for member := range now {
			if !before[member] {
				added++
			}
		}
		if before = now; added == 1 {
			alone++
		}
	}
	if alone > 2 {
		t.Errorf("%d of %d networks were added alone", alone, more)
	}
}

// addressSet is the members of e0's address set of destinations with these networks; it fails unless they are these.
func addressSet(t *testing.T, w *world.World, list []netip.Prefix) map[string]bool {
	t.Helper()
	o := compiletest.Traffic(0, "a")
	o.Networks = destinations.Of(list...)
	w.SetTraffic(o)
	members := map[string]bool{}
	var prefixes []netip.Prefix
	for k := range compile.Full(w, []compile.Feature{egressip.Destinations{}}).SetElems.Rows() {
		if strings.HasSuffix(k.Set, "/destinations.v4") {
			members[k.Addr] = true
			prefixes = append(prefixes, netip.MustParsePrefix(k.Addr))
		}
	}
	if !destinations.Of(prefixes...).Equal(o.Networks) {
		t.Fatal("the address set has other addresses than the networks")
	}
	return members
}
