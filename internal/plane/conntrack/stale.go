package conntrack

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// Own is what a router's connections look like without any egress IP.
type Own struct {
	Addrs []netip.Addr   // sources that a pod without an entry in State.Sources may have: the node's, the router's join address
	Pods  []netip.Prefix // the cluster's pod subnets: connections from elsewhere are none of ours
	// Mark is on connections that were given an egress IP, under Mask; Mask 0 where they have none. With it, the others may have any source.
	Mark, Mask uint32
}

// policy is what is right for the connections of one router.
type policy struct {
	sources map[netip.Addr]netip.Addr // by pod
	exempt  map[netip.Addr]plan.None
	own     Own
}

func (p policy) equal(o policy) bool {
	return maps.Equal(p.sources, o.sources) && maps.Equal(p.exempt, o.exempt) &&
		p.own.Mark == o.own.Mark && p.own.Mask == o.own.Mask && slices.Equal(p.own.Addrs, o.own.Addrs) && slices.Equal(p.own.Pods, o.own.Pods)
}

// stale says whether a connection has another source than it must have. Connections that are not translated, or do not come
// from a pod, are left alone.
func (p policy) stale(e Entry) bool {
	if !e.Translated() {
		return false
	}
	want, selected := p.sources[e.Orig.Src]
	if !selected && !slices.ContainsFunc(p.own.Pods, func(n netip.Prefix) bool { return n.Contains(e.Orig.Src) }) {
		return false
	}
	if _, exempt := p.exempt[e.Orig.Dst]; selected && !exempt {
		return e.Source() != want
	}
	if p.own.Mask != 0 {
		return e.Mark&p.own.Mask == p.own.Mark
	}
	return !slices.Contains(p.own.Addrs, e.Source())
}

// policies are one for each router that own names or that has sources.
func policies(want *plan.State, own map[string]Own) map[string]policy {
	out := map[string]policy{}
	exempt := map[netip.Addr]plan.None{}
	for a := range want.SourceExempt.Rows() {
		exempt[a] = plan.None{}
	}
	for router, o := range own {
		out[router] = policy{map[netip.Addr]netip.Addr{}, exempt, o}
	}
	for s, source := range want.Sources.Rows() {
		p, ok := out[s.Router]
		if !ok {
			p = policy{map[netip.Addr]netip.Addr{}, exempt, Own{}}
			out[s.Router] = p
		}
		p.sources[s.Pod] = source
	}
	return out
}
