package conntrack

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// withNetworks adds the routers whose connections a router of own translates again. The outside sees own's addresses,
// too, for pods without an egress IP. Such a router masquerades pods' packets alone, so no list of pods is needed.
func withNetworks(own map[string]Own, want *plan.State) map[string]Own {
	all := maps.Clone(own)
	for m := range want.Masquerades.Rows() {
		if behind, is := own[m.Behind]; is {
			r := Own{Masquerades: all[m.Router].Masquerades}
			r.Addrs, r.Behind, r.Masquerades = behind.Addrs, m.Behind, append(r.Masquerades, m.IP)
			for _, a := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
				r.Pods = append(r.Pods, netip.PrefixFrom(a, 0))
			}
			slices.SortFunc(r.Masquerades, netip.Addr.Compare)
			all[m.Router] = r
		}
	}
	return all
}

// keepRouters forgets all routers but those of own.
func keepRouters[V any](of map[string]V, own map[string]Own) {
	maps.DeleteFunc(of, func(router string, _ V) bool {
		_, is := own[router]
		return !is
	})
}

// otherZones are the numbers of the zones that a router's connections pass beside the one that is looked at; 0: none.
type otherZones struct {
	before               int // where the router tracks connections before it translates their source
	behindBefore, behind int // the zones of the router behind it
}

// otherZonesOf finds them. ok: that of a router behind it is known, if there is one.
func (p *Plane) otherZonesOf(ctx context.Context, router string, own Own) (z otherZones, ok bool) {
	z.before, _ = p.zones.CTZone(ctx, router+"_dnat")
	if own.Behind == "" {
		return z, true
	}
	z.behindBefore, _ = p.zones.CTZone(ctx, own.Behind+"_dnat")
	z.behind, ok = p.zones.CTZone(ctx, plan.SNATZone(own.Behind))
	return z, ok
}

// stream identifies a connection where one router has translated it and another one has not.
type stream struct {
	proto uint8
	Tuple
}

func (e Entry) streamBefore() stream {
	o := e.Orig
	o.ICMPType, o.ICMPCode = 0, 0
	return stream{e.Proto, o}
}

func (e Entry) streamBehind() stream {
	r := e.Reply
	return stream{e.Proto, Tuple{Src: r.Dst, Dst: r.Src, SrcPort: r.DstPort, DstPort: r.SrcPort, ICMPID: r.ICMPID}}
}

// dumpConnections lists the connections of some pods, or of all with nil. Those of a network beside the default one are
// joined: from the pod's tuple in the zone to what the outside sees, which the zone behind has. One that is not in both
// zones is left out. With all pods, those in the zone behind that no pod has are listed, too: the network, or another
// one that had its address, has lost them, and a pod's connection from the same port would get their source.
func (p *Plane) dumpConnections(
	ctx context.Context, zone int, z otherZones, own Own, of pods,
) (out []Entry, err error) {
	patterns := of.podPatterns()
	if own.Behind == "" {
		return p.target.Dump(ctx, zone, patterns...)
	}
	// The zone behind is read first. Each of its connections is in the other zone already.
	behind, err := p.dumpBehind(ctx, z.behind, own)
	for looks := 0; looks == 0 || looks == 1 && len(patterns) == 0 && len(behind) > 0; looks++ {
		entries, unread := p.target.Dump(ctx, zone, patterns...)
		err = errors.Join(err, unread)
		for _, e := range entries {
			if o, is := behind[e.streamBehind()]; is {
				delete(behind, e.streamBehind())
				e.Reply, e.Between = o.Reply, o.Orig
				out = append(out, e)
			}
		}
	}
	if len(patterns) == 0 && err == nil {
		out = append(out, slices.Collect(maps.Values(behind))...)
	}
	return out, err
}

func (p *Plane) dumpBehind(ctx context.Context, zone int, own Own) (map[stream]Entry, error) {
	var from []Entry
	for _, a := range own.Masquerades {
		from = append(from, Entry{Orig: Tuple{Src: a}})
	}
	entries, err := p.target.Dump(ctx, zone, from...)
	out := map[stream]Entry{}
	for _, e := range entries {
		if slices.Contains(own.Masquerades, e.Orig.Src) {
			out[e.streamBefore()] = e
		}
	}
	return out, err
}

// inOtherZones returns the same connections in the other zones that they pass: untranslated in the router, the same in
// the router behind it, and as the outside sees them on the uplink's bridge. They are ended first, for nothing would
// lead to them afterwards. If they stayed, a connection that ended by way of another node would count as established
// for a day, and one from the same port would get no answer once the address is back.
func (p policy) inOtherZones(stale []Entry) (out []Entry) {
	in := func(zone int, e Entry, orig Tuple) {
		if zone != 0 {
			out = append(out, Entry{Proto: e.Proto, Orig: orig, Zone: zone})
		}
	}
	for _, e := range stale {
		between := e.Between
		if between == (Tuple{}) {
			between = e.Orig
		}
		in(p.before, e, e.Orig)
		in(p.behindBefore, e, between)
		in(p.behind, e, between)
		if p.before != 0 || p.behind != 0 {
			outside := e.Orig
			outside.Src, outside.SrcPort, outside.ICMPID = e.Reply.Dst, e.Reply.DstPort, e.Reply.ICMPID
			in(plan.ZoneGateway, e, outside)
		}
	}
	return out
}
