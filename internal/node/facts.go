package node

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	apiv1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// hostFacts is what the world needs to know of this host. It is nil until the gateway bridge has an address.
func hostFacts(h route.Host, c *world.Config) *world.Host {
	link, ok := h.Link(c.Bridge)
	if !ok {
		return nil
	}
	out := &world.Host{UplinkMAC: link.MAC, MTU: link.MTU}
	for _, a := range h.Addrs {
		if !countsAsHost(a) {
			continue
		}
		ip := a.Prefix.Addr()
		out.Addrs = append(out.Addrs, ip)
		if _, have := world.FamilyOf(ip).Of(out.Primary); a.Dev == c.Bridge && !have {
			out.Primary = append(out.Primary, a.Prefix)
		}
	}
	if len(out.Primary) == 0 {
		return nil
	}
	slices.SortFunc(out.Primary, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	slices.SortFunc(out.Addrs, netip.Addr.Compare)
	for _, v6 := range []bool{false, true} {
		if r, ok := h.Default(v6); ok && r.Dev == c.Bridge && r.Via.IsValid() {
			out.Gateways = append(out.Gateways, r.Via)
		}
	}
	return out
}

// countsAsHost leaves out what is not the host's own: the management port, what we added, what is valid on its link only.
func countsAsHost(a route.Address) bool {
	ip := a.Prefix.Addr()
	return !a.Ours && a.Dev != world.ManagementPort && !strings.HasPrefix(a.Dev, "br-") && ip.IsGlobalUnicast() && !ip.IsLinkLocalUnicast()
}

// nodeAnnotations are what the others must know of this host, under OVN-Kubernetes' names.
func nodeAnnotations(self string, h *world.Host, n *world.Node, c *world.Config) (map[string]string, error) {
	primary, cidrs, ips := map[string]string{}, []string{}, []string{}
	for _, p := range h.Primary {
		primary["ip"+world.FamilyOf(p.Addr()).String()] = p.String()
		ips = append(ips, p.String())
	}
	for _, a := range h.Addrs {
		cidrs = append(cidrs, world.Single(a).String())
	}
	gateways := []string{}
	for _, g := range h.Gateways {
		gateways = append(gateways, g.String())
	}
	out := map[string]string{apiv1.AnnotationNodeChassisID: self, apiv1.AnnotationZoneName: self}
	for key, v := range map[string]any{
		apiv1.AnnotationNodePrimaryIfaddr: primary,
		apiv1.AnnotationHostCIDRs:         cidrs,
		apiv1.AnnotationL3GatewayConfig: map[string]any{"default": map[string]any{
			"mode": c.GatewayMode, "interface-id": c.Bridge + "_" + self, "bridge-id": c.Bridge, "mac-address": h.UplinkMAC,
			"ip-addresses": ips, "next-hops": gateways,
		}},
		apiv1.AnnotationNodeMgmtPortMACAddresses: managementMAC(n),
	} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out[key] = string(text)
	}
	return out, nil
}

func managementMAC(n *world.Node) map[string]string {
	if n == nil || len(n.Subnets) == 0 {
		return map[string]string{}
	}
	return map[string]string{"default": world.MAC(world.Nth(n.Subnets[0], 2))}
}
