package gateway

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Management is the host's port into its node switch, and what the host needs to use it.
type Management struct{}

func (Management) Name() string    { return "gateway-management" }
func (Management) Per() world.Kind { return world.KindNetwork }

// Compile adds the port, its addresses and the routes to pods and Services, of the default network: the host knows pods
// by their addresses, and those of another network may be the same. So pods of others do not reach their own node.
func (Management) Compile(w *world.View, network string, out *plan.Rows) {
	p := w.Part(network)
	if p == nil || network != ref.DefaultNetwork {
		return
	}
	names, mtu := plan.Names{Network: p.Name, ID: p.ID}, w.Config.PodMTU(p.Host)
	plan.Add(&out.Ports, plan.Port{Bridge: plan.IntegrationBridge, Name: names.ManagementPort()}, plan.PortSpec{
		Type: "internal", MAC: world.MAC(world.Nth(p.Subnets[0], 2)), MTU: mtu,
		ExternalIDs: plan.Pairs("iface-id", names.HostPort(w.Self)),
	})
	for _, s := range p.Subnets {
		managementFamily(names, w, s, mtu, out)
	}
}

func managementFamily(names plan.Names, w *world.View, subnet netip.Prefix, mtu int, out *plan.Rows) {
	dev, f := names.ManagementPort(), world.FamilyOf(subnet.Addr())
	own, router := world.Nth(subnet, 2), world.Nth(subnet, 1)
	plan.Add(&out.Addrs, plan.Addr{Dev: dev, Prefix: netip.PrefixFrom(own, subnet.Bits())},
		plan.AddrSpec{NoDAD: f == world.V6})
	to := w.Config.Cluster(f)
	for _, s := range w.Config.ServiceSubnets {
		if world.FamilyOf(s.Addr()) == f {
			to = append(to, s)
		}
	}
	for _, dst := range to {
		plan.Add(&out.Routes, plan.RouteKey{Table: plan.MainTable, Dst: dst}, plan.Route{Dev: dev, Via: router,
			Src: own, MTU: mtu})
	}
	for _, toPods := range []bool{false, true} {
		plan.Add(&out.Accepts, plan.Accept{V6: f == world.V6, Dev: dev, Out: toPods}, plan.None{})
	}
	if port := w.Config.AgentPort; port != 0 {
		plan.Add(&out.Accepts, plan.Accept{V6: f == world.V6, Dev: dev, Port: port}, plan.None{})
	}
	for _, key := range forwardingKeys(f, dev) {
		plan.Add(&out.Sysctls, plan.Sysctl{Key: key}, "1")
	}
	if f == world.V6 {
		// A pod that may send raw packets advertises itself as a router; the kernel of a host that routes and takes
		// advertisements (accept_ra=2) would send by it.
		plan.Add(&out.Sysctls, plan.Sysctl{Key: "net.ipv6.conf." + dev + ".accept_ra"}, "0")
	}
	if f == world.V4 {
		// Loose: a reply of a pod may come by another way than the kernel would send to it.
		plan.Add(&out.Sysctls, plan.Sysctl{Key: plan.LinkSetting(dev, "rp_filter")}, "2")
		noRedirects(w.Config.Bridge, out)
	}
}

// noRedirects: packets that come late for an address that this node has given up go to its default gateway, and the
// kernel would tell the sender to go there itself from then on. Linux believes that for five minutes, though the
// address may be back on this node the next second. The kernel asks whether either setting is on.
func noRedirects(bridge string, out *plan.Rows) {
	for _, link := range []string{"all", bridge} {
		plan.Add(&out.Sysctls, plan.Sysctl{Key: plan.LinkSetting(link, "send_redirects")}, "0")
	}
}

func forwardingKeys(f world.Family, dev string) []string {
	if f == world.V4 {
		return []string{plan.LinkSetting(dev, "forwarding")}
	}
	return []string{"net.ipv6.conf.all.forwarding"}
}

// Settings are this node's chassis in the local OVS database: they wait for nothing but the uplink's address.
type Settings struct{}

func (Settings) Name() string    { return "gateway-settings" }
func (Settings) Per() world.Kind { return world.KindHost }

// Compile adds the keys that ovn-controller reads.
func (Settings) Compile(w *world.View, _ string, out *plan.Rows) {
	h := w.Host()
	if h == nil || len(h.Primary) == 0 {
		return
	}
	datapath := "system"
	if w.Config.UserspaceOVS {
		datapath = "netdev"
	}
	for k, v := range map[string]string{
		"system-id": w.Self, "hostname": w.Self, "ovn-remote": "unix:/run/ovn/ovnsb_db.sock",
		"ovn-encap-type": "geneve",
		"ovn-encap-ip":   h.Primary[0].Addr().String(), "ovn-bridge-datapath-type": datapath, "ovn-monitor-all": "true",
		"ovn-bridge-mappings": plan.PhysicalNetwork + ":" + w.Config.Bridge, "ovn-is-interconn": "true",
		// A restarted ovn-controller computes all flows before it takes the former ones away.
		"ovn-ofctrl-wait-before-clear": "1000",
	} {
		plan.Add(&out.OVSIDs, k, v)
	}
}
