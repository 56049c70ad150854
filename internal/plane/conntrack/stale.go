package conntrack

import (
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
	router string
	want   *plan.State
	own    Own
}

// stale says whether a connection has another source than it must have. Connections that are not translated, or do not come
// from a pod, are left alone.
func (p policy) stale(e Entry) bool {
	if !e.Translated() {
		return false
	}
	want, selected := p.want.Sources.Get(plan.Source{Router: p.router, Pod: e.Orig.Src})
	if !selected && !slices.ContainsFunc(p.own.Pods, func(n netip.Prefix) bool { return n.Contains(e.Orig.Src) }) {
		return false
	}
	if _, exempt := p.want.SourceExempt[e.Orig.Dst]; selected && !exempt {
		return e.Source() != want
	}
	if p.own.Mask != 0 {
		return e.Mark&p.own.Mask == p.own.Mark
	}
	return !slices.Contains(p.own.Addrs, e.Source())
}

func (o Own) equal(b Own) bool {
	return o.Mark == b.Mark && o.Mask == b.Mask && slices.Equal(o.Addrs, b.Addrs) && slices.Equal(o.Pods, b.Pods)
}
