package gateway

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Router is what the node's address has to do with its pods: it is their source outside, and their host's address.
type Router struct{}

func (Router) Name() string    { return "gateway-router" }
func (Router) Per() world.Kind { return world.KindNetwork }

// Compile adds translation and policies.
func (Router) Compile(w *world.View, network string, out *plan.Rows) {
	p := w.Part(network)
	if p == nil {
		return
	}
	names, h := plan.Names{Network: p.Name, ID: p.ID}, p.Host
	for _, s := range p.Subnets {
		f := world.FamilyOf(s.Addr())
		if source, ok := outsideAddress(p, f); ok {
			nodeIP(names, w.Self, s, source, out)
			if network != ref.DefaultNetwork {
				plan.Add(&out.Masquerades, plan.Masquerade{Router: names.GatewayRouter(w.Self), IP: source,
					Behind: plan.DefaultNames().GatewayRouter(w.Self)}, plan.None{})
			}
		}
		if network != ref.DefaultNetwork {
			allowOpenServices(names, p, f, out)
			continue
		}
		for _, a := range f.OfAddrs(h.Addrs) {
			ownHost(names, w.Self, f, a, world.Nth(s, 2), out)
			if !slices.ContainsFunc(h.Primary, func(p netip.Prefix) bool { return p.Addr() == a }) {
				ownHostForOthers(names, w.Self, f, a, world.Nth(s, 2), out)
			}
		}
		for _, a := range f.OfAddrs(h.LinkLocal) {
			ownHost(names, w.Self, f, a, world.Nth(s, 2), out)
		}
	}
}

// outsideAddress is the address that pods' packets have when they leave the gateway router.
func outsideAddress(p *world.Part, f world.Family) (netip.Addr, bool) {
	if a, ok := p.Masquerade(f); ok {
		return a, true
	}
	primary, ok := f.Of(p.Host.Primary)
	return primary.Addr(), ok
}

// nodeIP is for this node's own pods only, never for the whole cluster subnet: pods of other nodes would leave with
// this node's address.
func nodeIP(names plan.Names, self string, subnet netip.Prefix, node netip.Addr, out *plan.Rows) {
	id := plan.RowID{Table: "NAT", Name: names.Row("node-ip/" + subnet.String())}
	out.AddNB(id, plan.Router(names.GatewayRouter(self)), plan.Cols{
		"type": "snat", "external_ip": node.String(), "logical_ip": subnet.String(),
		"external_port_range": plan.PodPorts,
	})
}

// ownHost sends a pod's packets to its own node over the management port: the gateway router has the same address and
// would keep them. To an address in the range of networks' masquerade addresses it does so before Networks drops them.
// No network is reached that way, whatever addresses networks have: these packets go to the host.
func ownHost(names plan.Names, self string, f world.Family, host, management netip.Addr, out *plan.Rows) {
	match := fmt.Sprintf("inport == %q && %s.dst == %s", names.RouterToNodeSwitch(self), f.Match(), host)
	to, priority := []string{management.String()}, plan.PriorityOwnNode
	if world.Masquerades(f).Contains(host) {
		priority = plan.PriorityOwnLinkLocal
	}
	out.AddPolicy(names, "own-node/"+host.String(), priority, match, "reroute", to, nil)
}

// allowOpenServices has a pod of a network beside the default one ask for the open Services by its own node, whatever
// its other packets are rerouted to.
func allowOpenServices(names plan.Names, p *world.Part, f world.Family, out *plan.Rows) {
	for _, c := range p.Cluster(f) {
		match := fmt.Sprintf("%[1]s.src == %[2]s && %[1]s.dst == $%[3]s", f.Match(), c,
			plan.SetName(plan.OpenServiceIPs(f.String())))
		out.AddPolicy(names, "open-services/"+c.String(), plan.PriorityOpen, match, "allow", nil, nil)
	}
}

// ownHostForOthers does the same with what other nodes steered here because this node holds an egress IP of theirs: to
// them, an address of this host beside its primary one is any machine's, and from the gateway router nothing finds the
// way back to the host that it shares its hardware address with.
func ownHostForOthers(names plan.Names, self string, f world.Family, host, management netip.Addr, out *plan.Rows) {
	match := fmt.Sprintf("inport == %q && %s.dst == %s", names.RouterToTransit(self), f.Match(), host)
	to := []string{management.String()}
	out.AddPolicy(names, "own-node-for-others/"+host.String(), plan.PriorityOwnNode, match, "reroute", to, nil)
}
