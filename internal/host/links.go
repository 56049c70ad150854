package host

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// secondaryLinks are the links that egress IPs can be on beside the primary network: ordinary ones with a global
// address of their own. Ports of OVS, VRF devices, and ports of bridges and bonds do not count.
func secondaryLinks(h route.Host, c *world.Config, gateway func(dev string) bool) []world.Link {
	var out []world.Link
	for _, l := range h.Links {
		master, enslaved := h.Link(l.Master)
		switch {
		case gateway(l.Name) || l.Name == "lo" || plan.IsManagementPort(l.Name) || l.MAC == "":
			continue
		case l.Kind == "vrf" || l.Kind == "openvswitch" || l.Kind == "tun":
			continue
		case enslaved && master.Kind != "vrf":
			continue
		}
		link := world.Link{Name: l.Name, Index: l.Index, MAC: l.MAC, VRF: l.Master, Addrs: ownAddrs(h, l.Name),
			Fault: linkFaults(h, c, l)}
		if len(link.Addrs) > 0 {
			link.Routes = routesBy(h, l)
			out = append(out, link)
		}
	}
	return out
}

// ownAddrs are those that make a link one to host egress IPs on: seed egress-ip.md asks for scope universe.
func ownAddrs(h route.Host, dev string) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range h.Addrs {
		if a.Dev == dev && countsAsHost(a) && !a.Tentative && !a.Local {
			out = append(out, a.Prefix)
		}
	}
	return out
}

// routesBy are the routes by a link, the best one for each destination. Those that come with our own addresses are left
// out, and link-local ones.
func routesBy(h route.Host, l route.Link) []world.LinkRoute {
	var out []world.LinkRoute
	for _, r := range h.Routes { // by destination and metric
		if r.Table != l.Table || r.Dev != l.Name || r.Ours || r.Dst.Addr().IsLinkLocalUnicast() || isOurs(h, r.Dst) {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Dst != r.Dst {
			out = append(out, world.LinkRoute{Dst: r.Dst, Via: r.Via, MTU: r.MTU, OnLink: r.OnLink})
		}
	}
	return out
}

func isOurs(h route.Host, dst netip.Prefix) bool {
	return slices.ContainsFunc(h.Addrs, func(a route.Address) bool { return a.Ours && a.Prefix == dst })
}
