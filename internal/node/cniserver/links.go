package cniserver

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/egret-net/egret/internal/cni"
	"github.com/egret-net/egret/internal/node/cniserver/podlink"
	"github.com/egret-net/egret/internal/node/ipam"
	"github.com/egret-net/egret/internal/world"
)

// linkSpecs is what the interfaces of an attachment must be: the default network's, and that of its namespace's own
// network n, if it has one. Not ok: its addresses are not of the node's subnets, or it is in another network.
func (s *Server) linkSpecs(p PodPort, r *cni.Request, n *PrimaryNetwork) (links []podlink.Spec, ok bool) {
	own := podlink.Spec{HostIface: p.HostIface, NetNS: r.NetNS, IfName: r.IfName, MTU: s.node.MTU(),
		ChecksumInSoftware: s.node.UserspaceDatapath()}
	primary := own
	if ok = addressLink(&own, s.node.Subnets(), p.IPs, p.MAC); n == nil || p.Primary == nil {
		return []podlink.Spec{own}, ok && n == nil && p.Primary == nil
	}
	own.Routes, own.Gateways = routesTo(s.node.DefaultInside(), own.Gateways), nil
	primary.HostIface, primary.IfName, primary.MTU = p.Primary.HostIface, podlink.PrimaryIfName, n.MTU
	inNetwork := addressLink(&primary, n.Subnets, p.Primary.IPs, p.Primary.MAC)
	return []podlink.Spec{own, primary}, ok && inNetwork && p.Primary.Network == n.Network
}

// addressLink gives an interface its addresses, its default routes and its MAC; false when they are of no subnet. The
// node's router has one MAC in all subnets, that of the first one's gateway (feature zone).
func addressLink(link *podlink.Spec, subnets []netip.Prefix, ips []netip.Addr, mac string) (ok bool) {
	link.Addrs, link.Gateways, ok = inSubnets(subnets, ips)
	var own, router error
	if link.MAC, own = net.ParseMAC(mac); ok {
		link.RouterMAC, router = net.ParseMAC(world.MAC(ipam.Gateway(subnets[0])))
	}
	return ok && errors.Join(own, router) == nil
}

// routesTo leads to destinations by the gateways of their families.
func routesTo(to []netip.Prefix, gateways []netip.Addr) (out []podlink.Route) {
	for _, dst := range to {
		for _, g := range gateways {
			if world.FamilyOf(g) == world.FamilyOf(dst.Addr()) {
				out = append(out, podlink.Route{To: dst, Via: g})
			}
		}
	}
	return out
}

func verifyLinks(links []podlink.Spec) error {
	var wrong []error
	for _, link := range links {
		wrong = append(wrong, podlink.Verify(link))
	}
	return errors.Join(wrong...)
}

func resultOf(links []podlink.Spec) *current.Result {
	r := &current.Result{CNIVersion: current.ImplementedSpecVersion}
	for _, link := range links {
		r.Interfaces = append(r.Interfaces, &current.Interface{Name: link.HostIface, Mtu: link.MTU},
			&current.Interface{Name: link.IfName, Mac: link.MAC.String(), Mtu: link.MTU, Sandbox: link.NetNS})
		addResult(r, link, len(r.Interfaces)-1)
	}
	return r
}

// addResult adds the addresses and routes of the interface of that index.
func addResult(r *current.Result, link podlink.Spec, inPod int) {
	for i, a := range link.Addrs {
		ip := &current.IPConfig{Interface: &inPod, Address: ipNet(a)}
		if len(link.Gateways) > 0 {
			ip.Gateway = link.Gateways[i].AsSlice()
			all := podlink.DefaultDestination(link.Gateways[i])
			r.Routes = append(r.Routes, &types.Route{Dst: ipNet(all), GW: ip.Gateway})
		}
		r.IPs = append(r.IPs, ip)
	}
	for _, way := range link.Routes {
		r.Routes = append(r.Routes, &types.Route{Dst: ipNet(way.To), GW: slices.Clone(way.Via.AsSlice())})
	}
}

func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
