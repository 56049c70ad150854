package egressip

import (
	"net/netip"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Destinations puts the networks to which an EgressIP serves its pods into one address set a family, and one set of the
// host's kernel. All rows about the EgressIP's packets match these sets, so that their number follows neither pods nor
// networks, and all of them agree.
type Destinations struct{}

func (Destinations) Name() string    { return "egressip-destinations" }
func (Destinations) Per() world.Kind { return world.KindEgressIP }

// Compile adds the sets of an EgressIP that has not all destinations.
func (Destinations) Compile(w *world.View, key string, out *plan.Rows) {
	e := w.EgressIP(key)
	if _, _, ok := w.Zone(); !ok || e == nil || e.Traffic == nil {
		return
	}
	for _, f := range w.Config.Families() {
		set, to := destinationsOf.setName(e, f), w.Destinations(key, f)
		out.AddSet(set)
		plan.Add(&out.Destinations, set, to)
		list := membersOf(to)
		for _, member := range divideLargeSet(to, list) {
			out.AddElem(set, member)
		}
		if egress.ThroughHost(w) {
			hostDestinationSet(e, f, out)
			host := destinationsOf.hostSet(e, f)
			for _, member := range list {
				plan.Add(&out.NFTElems, plan.NFTElem{Set: host, Key: member}, "")
			}
		}
	}
}

// sourceDestinations are what a source of an EgressIP is for, by their key in the plan.
func sourceDestinations(e *world.EgressIP, f world.Family) string {
	if e.Traffic == nil {
		return plan.Everywhere
	}
	return destinationsOf.setName(e, f)
}

func hostDestinationSet(e *world.EgressIP, f world.Family, out *plan.Rows) {
	plan.Add(&out.NFTSets, plan.NFTSet{Name: destinationsOf.hostSet(e, f)}, plan.NFTSetSpec{Key: egress.AddrType(f),
		Interval: true})
}

func upperHalf(everything netip.Prefix) netip.Prefix {
	b := everything.Addr().AsSlice()
	b[0] = 1 << 7
	a, _ := netip.AddrFromSlice(b) // of as many bytes as an address has
	return netip.PrefixFrom(a, 1)
}

// onlyTo is what OVN's matches on an EgressIP's packets ask of the destination: nothing where it has all.
func onlyTo(e *world.EgressIP, f world.Family) string {
	if e.Traffic == nil {
		return ""
	}
	return " && " + f.Match() + ".dst == " + plan.InSet(destinationsOf.setName(e, f))
}

// hostOnlyTo is the same in nftables; with a space before it.
func hostOnlyTo(e *world.EgressIP, f world.Family) string {
	if e.Traffic == nil {
		return ""
	}
	return " " + egress.IP(f) + " daddr @" + destinationsOf.hostSet(e, f)
}
