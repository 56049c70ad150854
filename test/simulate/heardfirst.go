package simulate

import (
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/trace"
)

// heardFirst reports whether a source is right by an object's change that the node which translates has heard of, and
// by an earlier change of another kind that it has not: it cannot follow. The pod's node may not have heard of the
// first one yet. Once it has, it waits for the other one. This is where the promise ends (docs/architecture.md), for as
// long as a watch takes that nothing keeps, and then the pod's node.
func (v *verdict) heardFirst(p *pod, end trace.End, dst netip.Addr) bool {
	heard := v.s.now.Add(-v.s.pace.Watch - v.s.pace.OVN - time.Second)
	return v.cannotFollow(end.Node) && !v.cannotFollow(p.on.name) && v.skew.hasTurned(heard, end.Src) &&
		v.skew.explains(v.disturbedSince(end.Node).Add(-v.s.pace.Watch), v.s.now, p, end.Src, dst)
}

// hasTurned reports whether an object with an address has changed since a time, or what decides about its destinations.
func (k *skew) hasTurned(since time.Time, ip netip.Addr) bool {
	for _, all := range k.egressIPs {
		e := all[len(all)-1].is
		if e == nil || !slices.Contains(e.IPs, ip) {
			continue
		}
		if changed(all, since) {
			return true
		}
		for _, t := range k.traffics {
			if e.Traffic != nil && changed(t, since) {
				return true
			}
		}
	}
	for name, all := range k.services {
		s := all[len(all)-1].is
		has := s != nil && slices.Contains(s.LoadBalancerIPs, ip)
		if has && (changed(all, since) || changed(k.served[name], since)) {
			return true
		}
	}
	return false
}

// changed reports whether an object has got a version since a time.
func changed[T any](all []version[T], since time.Time) bool {
	return len(all) > 0 && all[len(all)-1].from.After(since)
}
