package egressip

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestNamesAreReadBack: what a former process left is found by its name, whatever the EgressIP is called, also by
// words that names are made of; and nothing else is taken for it.
func TestNamesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?`),
			rapid.SampledFrom([]string{"guarded.v4", "egressip", "pods", "v6",
				strings.Repeat("guarded.v4", 9)})).Draw(t, "name")
		e := &world.EgressIP{Name: name}
		f := rapid.SampledFrom([]world.Family{world.V4, world.V6}).Draw(t, "family")
		for _, c := range []contents{allPods, partlyPods, localPods, remotePods, pausedPodsOf, filteredPodsOf,
			destinationsOf} {
			for _, set := range []string{c.setName(e, f), c.hostSet(e, f)} {
				object, has, family := egress.ParseName(set)
				is := object == refTo(name) || set == c.hostSet(e, f)
				if !is || has != string(c) || family != f.String() ||
					egress.IsLeakFilter(set) != (c == filteredPodsOf) {
					t.Fatalf("%s is %s's, has %s of %s; a leak filter: %v", set, object, has, family,
						egress.IsLeakFilter(set))
				}
			}
		}
		if object, has, family := egress.ParseName(policyName(name, f)); object != refTo(name) || has != "" ||
			family != f.String() {
			t.Fatalf("the policy is %s's, has %q of %q", object, has, family)
		}
		ip := netip.MustParseAddr([...]string{"172.18.0.50", "fc00::50"}[f])
		id := plan.RowID{Table: "NAT", Name: natRow(name, ip) + "/10.244.0.0/16"}
		if have, is := Adopted(id); !is || have != egressOf(name, ip) {
			t.Fatalf("%v is of %v: %v", id, have, is)
		}
		if rapid.Bool().Draw(t, "some destinations") {
			e.Traffic = labels.Everything()
		}
		set, isShort := translatedPods(e, ip), len(name) <= 60
		if (plan.NFTSet{Name: set}).LosesFirst(false) != (e.Traffic != nil) {
			t.Fatalf("%s is of an EgressIP to %v", set, e.Traffic)
		}
		if have, is := AdoptedOnLink(set); is != (egress.ShortFor(name, ip) == name+"_"+strings.ReplaceAll(ip.String(),
			":", "-")) || isShort && !is || is && have != egressOf(name, ip) {
			t.Fatalf("%s is of %v: %v", set, have, is)
		}
		if have, is := AdoptedOnLink(allPods.hostSet(e, f)); is {
			t.Fatalf("a set of no address is of %v", have)
		}
	})
	if !egress.IsLeakFilter(egress.FilteredPods(world.V4)) || !egress.IsLeakFilter(egress.FilteredPods(world.V6)) {
		t.Error("the leak filter is none")
	}
	for _, set := range []string{
		egress.PartlyServedPods(world.V4), egress.PausedPods(world.V6), egress.NodeIPs(world.V4), "guarded", "",
		"egressip/", "egressip/guarded.v4", "egress-ips/3.v4"} {
		if egress.IsLeakFilter(set) {
			t.Errorf("%q is a leak filter", set)
		}
	}
}
