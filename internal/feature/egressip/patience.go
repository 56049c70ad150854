package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/world"
)

// NewPatience measures how long nodes take for EgressIPs, and has seen nothing yet.
func NewPatience() *patience.Patience { return patience.New(asks) }

// asks says whether there is an EgressIP and its spec names an address.
func asks(w *world.World, name string, ip netip.Addr) bool {
	e := w.EgressIP(name)
	return e != nil && slices.Contains(e.IPs, ip)
}
