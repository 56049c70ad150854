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
}

// policy says which connections of one router are right.
type policy struct {
	router string
	want   *plan.State
	rest
	before int  // the other zone in which the router tracks connections before it translates their source, or 0
	bare   bool // connections are wrong, too, that are not translated though they might be
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

// isStale says whether a connection has another source than it must have. It is false for connections that are not
// translated, or do not come from a pod.
func (p policy) isStale(e Entry) bool {
	if !e.Translated() {
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
	return o.Mark == b.Mark && o.Mask == b.Mask && slices.Equal(o.Addrs, b.Addrs) && slices.Equal(o.Pods, b.Pods)
}

// inOtherZones returns the same connections in the other zones that they pass: untranslated in the router, and as the
// outside sees them on the uplink's bridge. They are ended first, for nothing would lead to them afterwards. If they
// stayed, a connection that ended by way of another node would count as established for a day, and one from the same
// port would get no answer once the address is back.
func (p policy) inOtherZones(stale []Entry) []Entry {
	if p.before == 0 {
		return nil
	}
	var out []Entry
	for _, e := range stale {
		outside := e.Orig
		outside.Src, outside.SrcPort, outside.ICMPID = e.Reply.Dst, e.Reply.DstPort, e.Reply.ICMPID
		out = append(out, Entry{Proto: e.Proto, Orig: e.Orig, Zone: p.before}, Entry{Proto: e.Proto, Orig: outside,
			Zone: plan.ZoneGateway})
	}
	return out
}
