package egressservice

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// candidateSources are the ingress IPs of a family that can be an EgressService's source, whatever others ask for: the
// one that it has, if it can keep that, else all. So it keeps nobody from those beside. It also says why other
// addresses are not sources.
func candidateSources(w *world.View, s *world.EgressService, service *world.Service, f world.Family) (
	out []netip.Addr, taken []string) {
	for _, ip := range f.OfAddrs(service.LoadBalancerIPs) {
		switch why := sourceConflict(w, s, ip); {
		case isInside(w.Config, ip):
		case why != "":
			taken = append(taken, why)
		case slices.Contains(s.Sources(), ip):
			return []netip.Addr{ip}, nil
		default:
			out = append(out, ip)
		}
	}
	return out, taken
}

// sourceConflict says why an ingress IP is no source of an EgressService, whatever others ask for; "": it can be. A
// node's word takes none from one that has it. An address of a host that is not its node's own is no conflict: some
// load balancers put the ingress IP on a link of the host that they announce it from (kube-vip, keepalived).
func sourceConflict(w *world.View, s *world.EgressService, ip netip.Addr) string {
	if by := w.PlacedBy(ip); len(by) > 0 {
		return ip.String() + " is an address of EgressIP " + by[0] + ": take it out of that, or have the load " +
			"balancer give the Service another one"
	}
	if own := func(name string) bool { return isOwn(w, name, ip) }; slices.ContainsFunc(w.HostsAt(ip), own) &&
		!slices.Contains(s.Sources(), ip) {
		return onHost(w, ip) + ": take it from that host, or have the load balancer give the Service another one"
	}
	return ""
}

// isOwn says whether an address is a node's own: of its primary network, or its kubelet's.
func isOwn(w *world.View, node string, ip netip.Addr) bool {
	n := w.Node(node)
	return slices.Contains(w.NodesAt(ip), node) || n != nil && slices.Contains(n.InternalIPs, ip)
}

// onHost says that a node has an address, if one does, and whether nothing but its own word says so.
func onHost(w *world.View, ip netip.Addr) string {
	nodes := w.HostsAt(ip)
	if len(nodes) == 0 {
		return ""
	}
	text := ip.String() + " is an address of node " + nodes[0]
	if n := w.Node(nodes[0]); n == nil || !slices.Contains(n.Record.Addrs, ip) {
		text += " by its own word alone"
	}
	return text
}

// chooseSources chooses the source addresses: in each family the one that it has, if the Service still has it, else the
// first, of those that are nobody else's, and that no node translates to for anybody else any more. One address is the
// source of one EgressService: with two hosts that translate to it, answers come to the one that a load balancer
// announces it on. Nor do two share it that have the same host now: each is elected by itself, by its own selector and
// its Service's endpoints, and whether one is served would follow from where the other goes.
func (f *facts) chooseSources(w *world.View, s *world.EgressService, service *world.Service, by owners) {
	for _, family := range w.Config.Families() {
		ips, taken := candidateSources(w, s, service, family)
		waits := false
		free := slices.DeleteFunc(ips, func(ip netip.Addr) bool {
			why, standing := heldElsewhere(s, ip, by)
			if why != "" {
				taken = append(taken, why)
			}
			waits = waits || standing
			return why != ""
		})
		f.taken = append(f.taken, taken...)
		if len(free) == 0 {
			f.lacking[family], f.awaited[family] = len(taken) > 0, waits
			continue
		}
		f.sources = append(f.sources, free[0])
		if text := onHost(w, free[0]); text != "" {
			f.doubts = append(f.doubts, text+", too: unless the load balancer has put it there, take it from that host")
		}
	}
	f.spare = f.unusedIngressIPs(w.Config, service)
}

// heldElsewhere says why an address is not free for an EgressService, "" if it is; and whether it is before long, for a
// node stands by it still.
func heldElsewhere(s *world.EgressService, ip netip.Addr, by owners) (why string, standing bool) {
	if owner := by.of(ip); owner != s.Key() {
		return ip.String() + " is the source of EgressService " + owner + ", whose Service has it, too: have the " +
			"load balancer give one of the Services another address", false
	}
	if slices.Contains(s.Sources(), ip) {
		return "", false
	}
	why = by.standing(ip)
	return why, why != ""
}

// unusedIngressIPs are the ingress IPs that are not used, if any is.
func (f *facts) unusedIngressIPs(c *world.Config, service *world.Service) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(service.LoadBalancerIPs), func(ip netip.Addr) bool {
		return isInside(c, ip) || slices.Contains(f.sources, ip)
	})
}
