package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// allowedClients are those of a family that a load balancer's address is for. They are disjoint: nftables refuses
// overlaps.
func allowedClients(s *world.Service, f world.Family) []netip.Prefix {
	var out []netip.Prefix
	for _, r := range s.SourceRanges {
		if world.FamilyOf(r.Addr()) == f {
			out = append(out, r)
		}
	}
	return out
}

// forSome says whether an address of a Service is for some clients only.
func forSome(s *world.Service, ip netip.Addr) bool {
	return len(s.SourceRanges) > 0 && slices.Contains(s.LoadBalancerIPs, ip)
}

// refusePods drops packets from pods of a switch to an address that is for some clients only, if the pods are not
// among these, before the switch balances it. Packets that the host sends in by its management port never have such a
// destination: the host has translated it, for its own set of clients.
func refusePods(w *world.View, s *world.Service, p world.ServicePort, f world.Family, ip netip.Addr, sw plan.RowID,
	out *plan.Rows) {
	if !forSome(s, ip) {
		return
	}
	match := fmt.Sprintf("%s.dst == %s && %s.dst == %d", f.Match(), ip, p.Protocol, p.Port)
	if only := allowedClients(s, f); len(only) > 0 {
		texts := make([]string, len(only))
		for i, r := range only {
			texts[i] = r.String()
		}
		match += fmt.Sprintf(" && %s.src != {%s}", f.Match(), strings.Join(texts, ", "))
	}
	name := fmt.Sprintf("service/%s/%s/%s", s.Key(), p.Protocol, netip.AddrPortFrom(ip, p.Port))
	out.AddACL(name, sw, plan.PriorityRefuse, match)
}
