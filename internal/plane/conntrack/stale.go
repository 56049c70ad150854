package conntrack

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// Own describes a router's connections without any egress IP.
type Own struct {
	Addrs []netip.Addr   // sources where State.Sources says nothing: the node's, the router's join address
	Pods  []netip.Prefix // the cluster's pod subnets: connections from elsewhere are not ours
	// Mark is on connections that were given an egress IP, under Mask; Mask 0 where they have none. With it, the others
	// may have any source.
	Mark, Mask uint32
	// Behind is the router that translates this one's connections again, "" where none does. Masquerades are the
	// sources that it gets from this one.
	Behind      string
	Masquerades []netip.Addr
}

// policy says which connections of one router are right.
type policy struct {
	router string
	want   *plan.State
	rest
	otherZones
	bare bool // connections are wrong, too, that are not translated though they might be
}

// wrongOf deletes the right ones of some connections.
func (p policy) wrongOf(all []Entry) []Entry {
	return slices.DeleteFunc(all, func(e Entry) bool {
		return !p.isStale(e) && !(p.bare && p.own.isUntranslated(e))
	})
}

// isUntranslated says whether a pod has begun a connection to a destination other than a pod, and nothing of it is
// translated. A connection whose destination another program on the host translates, as proxies and host ports do, is
// that program's.
func (o Own) isUntranslated(e Entry) bool {
	return !e.Translated() && e.Reply.Src == e.Orig.Dst && o.isPod(e.Orig.Src) && !o.isPod(e.Orig.Dst)
}

func (o Own) isPod(a netip.Addr) bool {
	return slices.ContainsFunc(o.Pods, func(p netip.Prefix) bool { return p.Contains(a) })
}

// isStale says whether a connection has another source than it must have, or no pod has it (dumpConnections). It is
// false for connections that are not translated, or do not come from a pod.
func (p policy) isStale(e Entry) bool {
	switch {
	case p.behind != 0 && e.Zone == p.behind:
		return true
	case !e.Translated():
		return false
	}
	sources, claimed := p.want.Sources.Get(plan.Source{Router: p.router, Pod: e.Orig.Src})
	if !claimed && !p.own.isPod(e.Orig.Src) {
		return false
	}
	if want, is := p.want.SourceOf(sources, e.Orig.Dst); is && !p.isExempt(e.Orig.Dst) {
		return want.IP.IsValid() && e.Source() != want.IP || want.Mark != 0 && e.Mark != want.Mark
	}
	if p.own.Mask != 0 {
		return e.Mark&p.own.Mask == p.own.Mark
	}
	return !slices.Contains(p.own.Addrs, e.Source())
}

func (p policy) isExempt(dst netip.Addr) bool {
	_, is := p.exempt[dst]
	return is
}

func (o Own) equalOwn(b Own) bool {
	return o.Mark == b.Mark && o.Mask == b.Mask && slices.Equal(o.Addrs, b.Addrs) && slices.Equal(o.Pods, b.Pods) &&
		o.Behind == b.Behind && slices.Equal(o.Masquerades, b.Masquerades)
}
