package service

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Host is what the host's kernel does for Services, whichever there are: chains whose rules look up sets and maps,
// that HostPorts fills.
type Host struct{}

func (Host) Name() string    { return "service-host" }
func (Host) Per() world.Kind { return world.KindHost }

// Compile adds chains, rules, sets and maps.
func (Host) Compile(w *world.View, _ string, out *plan.Rows) {
	n, _, ok := w.Zone()
	if !ok {
		return
	}
	plan.Add(&out.Sysctls, plan.Sysctl{Key: plan.LinkSetting(w.Config.Bridge, "forwarding")}, "1")
	for _, f := range w.Config.Families() {
		k := kernel{w.Config, f, out}
		k.declareSets()
		k.refuseClients()
		if k.hasFragments() {
			k.addTranslation(fragments, out.AddChain(plan.ChainServices), fmt.Sprintf("iifname %q ", w.Config.Bridge))
		}
		k.addTranslation(all, out.AddChain(plan.ChainServices), notFromPods())
		own := out.AddChain(plan.ChainOwnServices)
		k.addTranslation(ownHost, own, "")
		k.addTranslation(all, own, "")
		k.addSourceRules()
		for _, s := range w.Config.ServiceSubnets {
			if world.FamilyOf(s.Addr()) != f {
				continue
			}
			k.keepInside(s)
			if w.HasNetworks() { // their Services answer by the host, with a cluster IP as source
				onlyAnswers(f, s.String(), out)
			}
		}
		if s, ok := f.Of(n.Subnets); ok {
			toOwnPods(w, n, f, world.Nth(s, 1), out)
		}
	}
}

// These are the origins of a connection that make a difference: a client outside with a datagram in fragments, a
// process of this host, and all others. The names are in the order of look-ups.
const (
	fragments = "0-fragments"
	ownHost   = "1-host"
	all       = "2-all"
)

// inFragments reports whether OVN cannot balance a datagram that comes in fragments and begins a connection. OVS 3.5
// in userspace puts fragments together for conntrack alone, and lets them go on one by one, without ports: no load
// balancer of OVN 25.03 matches any. The host's kernel puts them together, and has to choose the endpoint itself. The
// kernel's datapath has whole datagrams.
func inFragments(w *world.View, p world.ServicePort) bool {
	return w.Config.UserspaceOVS && p.Protocol == "udp"
}

// How an endpoint is chosen: there is one; by chance; by the client's address.
const (
	one    = "one"
	shares = "shares"
	affine = "affine"
)

// targetsMap is a map from a Service's address, protocol and port, with an interval of numbers where there are
// several endpoints, to an endpoint.
func targetsMap(who, choice string, f world.Family) string {
	return "services/" + who + "/" + choice + "." + f.String()
}

// Sets of a Service's addresses, protocols and ports: those whose clients' addresses are kept, those of networks
// beside the default one, for which this host is a client as others, and those whose clients get the address of this
// host; those that have no endpoint here; those that only some clients may use, and with each its clients.
const (
	setKept       = "kept"
	setNetworks   = "networks"
	setHidden     = "hidden"
	setRefused    = "refused"
	setRestricted = "guarded"
	setClients    = "clients"
)

func frontendSet(name string, f world.Family) string { return "services/" + name + "." + f.String() }

// modulus is above all numbers that choose among endpoints.
const modulus = 1 << 16

// kernel writes one family's rows.
type kernel struct {
	config *world.Config
	family world.Family
	out    *plan.Rows
}

// hasFragments reports whether what comes by the bridge is in fragments: all else OVN balances.
func (k kernel) hasFragments() bool {
	return k.config.UserspaceOVS && k.config.GatewayMode == world.SharedGateway
}

func (k kernel) ipKeyword() string { return [...]string{"ip", "ip6"}[k.family] }

func (k kernel) frontendMatch() string { return k.ipKeyword() + " daddr . meta l4proto . th dport" }

// declareSets declares them. A number has no type of its own in nftables: typeof gives it one.
func (k kernel) declareSets() {
	address := [...]string{"ipv4_addr", "ipv6_addr"}[k.family]
	key, value := address+" . inet_proto . inet_service", address+" . inet_service"
	lookUps := []string{ownHost, all}
	if k.hasFragments() {
		lookUps = append(lookUps, fragments)
	}
	for _, who := range lookUps {
		k.addSet(targetsMap(who, one, k.family), plan.NFTSetSpec{Key: key, Value: value})
		for _, choice := range []string{shares, affine} {
			k.addSet(targetsMap(who, choice, k.family), plan.NFTSetSpec{
				Key:   fmt.Sprintf("%s . numgen random mod %d", k.frontendMatch(), modulus),
				Value: k.ipKeyword() + " daddr . th dport", Interval: true, TypeOf: true,
			})
		}
	}
	for _, name := range []string{setKept, setNetworks, setHidden, setRefused, setRestricted} {
		k.addSet(frontendSet(name, k.family), plan.NFTSetSpec{Key: key})
	}
	k.addSet(frontendSet(setClients, k.family), plan.NFTSetSpec{Key: address + " . " + key, Interval: true})
}

func (k kernel) addSet(name string, spec plan.NFTSetSpec) {
	plan.Add(&k.out.NFTSets, plan.NFTSet{Name: name}, spec)
}

const transport = "meta l4proto { tcp, udp, sctp } "

// notFromPods: packets from the management port have been balanced in OVN.
func notFromPods() string { return fmt.Sprintf("iifname != %q ", plan.DefaultNames().ManagementPort()) }

// refuseClients answers before anything is translated.
func (k kernel) refuseClients() {
	c, own := k.out.AddChain(plan.ChainServicesGuard), k.out.AddChain(plan.ChainOwnServicesGuard)
	for chain, from := range map[plan.NFTChain]string{c: notFromPods(), own: ""} {
		k.addRule(chain, "1 clients", from+transport+"%s @%s %s saddr . %s != @%s drop",
			k.frontendMatch(), frontendSet(setRestricted, k.family), k.ipKeyword(), k.frontendMatch(),
			frontendSet(setClients, k.family))
	}
	k.addRule(c, "2 refused tcp", notFromPods()+"ct state new meta l4proto tcp %s @%s reject with tcp reset",
		k.frontendMatch(), frontendSet(setRefused, k.family))
	k.addRule(c, "3 refused", notFromPods()+"ct state new meta l4proto { udp, sctp } %s @%s reject",
		k.frontendMatch(), frontendSet(setRefused, k.family))
}

// addTranslation looks a new connection up. A client keeps its endpoint by its address alone, as long as the endpoints
// stay the same.
func (k kernel) addTranslation(who string, c plan.NFTChain, match string) {
	for choice, slot := range map[string]string{
		one: "", shares: fmt.Sprintf(" . numgen random mod %d", modulus),
		affine: fmt.Sprintf(" . jhash %s saddr mod %d seed 0x1", k.ipKeyword(), modulus),
	} {
		k.addRule(c, who+" "+choice, match+transport+"dnat %s to %s%s map @%s", k.ipKeyword(), k.frontendMatch(), slot,
			targetsMap(who, choice, k.family))
	}
}

// addSourceRules keeps the addresses of clients outside where the policy asks for it, before gateway.Firewall
// masquerades what goes to pods. Packets that go on to another node's host get this host's address, or the answer
// would not come back here. Requests of the host to an endpoint of its own come from that endpoint's address: a server
// that is bound to no address answers by UDP from the address that its client asks from. A pod of a network beside the
// default one would answer the management port's address by its interface in the default network.
func (k kernel) addSourceRules() {
	c := k.out.AddChain(plan.ChainPostrouting)
	asked := fmt.Sprintf("ct original %s daddr . meta l4proto . ct original proto-dst", k.ipKeyword())
	dev := plan.DefaultNames().ManagementPort()
	const foreign = transport + "fib saddr type != local "
	balanced := ""
	if k.hasFragments() { // which pods would answer by the bridge
		balanced = k.ipKeyword() + " daddr " + k.config.LocalOnly(k.family).String() + " "
	}
	k.addRule(c, "client kept", foreign+"oifname %q %s%s @%s accept", dev, balanced, asked,
		frontendSet(setKept, k.family))
	k.addRule(c, "client of networks", transport+"oifname %q %s @%s accept", dev, asked,
		frontendSet(setNetworks, k.family))
	k.addRule(c, "own endpoint", transport+"oifname \"lo\" ct status dnat snat %[1]s to %[1]s daddr", k.ipKeyword())
	k.addRule(c, "client masqueraded", foreign+"oifname != %q %s @%s masquerade", dev, asked,
		frontendSet(setHidden, k.family))
}

// keepInside drops packets to cluster IPs that would leave by another link than the management port, because the host
// has lost its route to the node switch. The switch answers for the addresses that no Service has (feature zone). It
// does not drop packets to a cluster IP that the host itself has: NodeLocal DNSCache listens at one.
func (k kernel) keepInside(s netip.Prefix) {
	c, dev := k.out.AddChain(plan.ChainClusterIPGuard), plan.DefaultNames().ManagementPort()
	k.addRule(c, s.String(), "oifname != { %q, \"lo\" } %s daddr %s counter drop", dev, k.ipKeyword(), s)
}

func (k kernel) addRule(c plan.NFTChain, name, format string, args ...any) {
	plan.Add(&k.out.NFTRules, plan.NFTRule{Chain: c, Name: name + " " + k.family.String()}, fmt.Sprintf(format,
		args...))
}
