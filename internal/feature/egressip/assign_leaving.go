package egressip

import (
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// leaving are the former holders of an object's addresses that are to go on translating.
func (a *assigner) leaving(o *object, items []world.Assignment) (out []world.Leaving, again time.Time) {
	has := func(ip netip.Addr) bool { return slices.Contains(o.e.IPs, ip) && !a.conflicts(o.e.Name, ip) }
	return a.round().Leaving(handover.Object{Object: ofName(o.e.Name), Is: &o.e.Placement,
		Shown: a.Shown(o.e.Name), Has: has}, items)
}

// round is this decision round for what EgressIPs share with other objects.
func (a *assigner) round() *handover.Round {
	return &handover.Round{World: a.world, W: a.w, Served: a.Served, Names: a.names, Now: a.Now}
}

func ofName(egressIP string) ref.Object { return ref.Object{Kind: ref.EgressIP, Name: egressIP} }
