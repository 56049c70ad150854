package host

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// Facts is what the world needs to know of this host; nil while neither the gateway bridge nor its uplink has an
// address. Addresses move from the one to the other when the agent first starts, and after each boot. names are those
// of routing tables.
func Facts(h route.Host, c *world.Config, names map[string]int) *world.Host {
	link, ok := h.Link(c.UplinkInterface)
	if !ok {
		return nil
	}
	gateway := func(dev string) bool { return dev == c.Bridge || dev == c.UplinkInterface }
	out := &world.Host{UplinkMAC: link.MAC, MTU: link.MTU, Tables: hostTables(h, names)}
	out.Links = secondaryLinks(h, c, gateway)
	for _, a := range h.Addrs {
		ip := a.Prefix.Addr()
		if isOnHost(a) && ip.Is4() && ip.IsLinkLocalUnicast() && !a.Local {
			out.LinkLocal = append(out.LinkLocal, ip)
		}
		if !countsAsHost(a) {
			continue
		}
		out.Addrs = append(out.Addrs, ip)
		if gateway(a.Dev) {
			out.Uplink = append(out.Uplink, a.Prefix)
		}
	}
	if out.Primary = preferredAddresses(h, gateway); len(out.Primary) == 0 {
		return nil
	}
	slices.SortFunc(out.Addrs, netip.Addr.Compare)
	slices.SortFunc(out.LinkLocal, netip.Addr.Compare)
	for _, v6 := range []bool{false, true} {
		for _, r := range h.DefaultRoutes(v6, gateway) {
			if r.Via.IsValid() && r.Via.Is6() == v6 && !slices.Contains(out.Gateways, r.Via) {
				out.Gateways = append(out.Gateways, r.Via)
			}
		}
	}
	return out
}

// NodeAnnotations is what the others must know of this host.
func NodeAnnotations(self string, h *world.Host, n *world.Node, c *world.Config) map[string]string {
	f := kube.HostFacts{
		Zone: self, ChassisID: self, Mode: c.GatewayMode, Bridge: c.Bridge, UplinkMAC: h.UplinkMAC, Primary: h.Primary,
		Gateways:  h.Gateways,
		HostCIDRs: h.CIDRs(),
	}
	if n != nil && len(n.Subnets) > 0 {
		f.ManagementMAC = world.MAC(world.Nth(n.Subnets[0], 2))
	}
	return kube.HostAnnotations(f)
}
