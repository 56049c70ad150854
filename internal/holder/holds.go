package holder

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Held is an address that this node announces.
type Held struct {
	EgressIP     string
	Announcement plan.Announcement
}

func (h Held) egressAddress() world.EgressAddress {
	return world.EgressAddress{Object: h.EgressIP, IP: h.Announcement.IP}
}

// Holds is what this node holds, as its targets have it.
type Holds struct {
	Addresses map[netip.Addr]Held
	// Shared are those of which another node says that it holds them, too.
	Shared map[netip.Addr]bool
	// Adopted: a former process left this, and the cluster is not known yet.
	Adopted bool
}

// AheadOf are the nodes that a plan leads this node's pods to before they say that they hold the address.
func AheadOf(s *plan.State) map[world.EgressAddress]string {
	var out map[world.EgressAddress]string
	for k, ahead := range s.Steered.Rows() {
		if ahead && out == nil {
			out = map[world.EgressAddress]string{}
		}
		if ahead {
			out[world.EgressAddress{Object: k.Object.Key(), IP: k.IP}] = k.Node
		}
	}
	return out
}

// HoldsOf is what this node holds when its targets have all of a plan.
func HoldsOf(s *plan.State) *Holds {
	h := &Holds{Addresses: map[netip.Addr]Held{}, Shared: map[netip.Addr]bool{}}
	for e, a := range s.Answered.Rows() {
		if first, is := h.Addresses[a.IP]; !is || e.Object.Name < first.EgressIP {
			h.Addresses[a.IP] = Held{e.Object.Name, a}
		}
	}
	for e := range s.Forwarded.Rows() {
		h.Shared[e.IP] = true
	}
	return h
}
