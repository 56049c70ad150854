package service

import (
	"fmt"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Host is what the host's kernel does for Services, whichever there are: chains whose rules look up sets and maps, that
// HostPorts fills.
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
		k := kernel{f, out}
		k.sets()
		k.refuseClients()
		k.translate(all, out.AddChain(plan.ChainServices), notFromPods())
		own := out.AddChain(plan.ChainOwnServices)
		k.translate(ownHost, own, "")
		k.translate(all, own, "")
		k.source()
		if s, ok := f.Of(n.Subnets); ok {
			toOwnPods(w, n, f, world.Nth(s, 1), out)
		}
	}
}

// Who begins a connection: a process of this host, where that makes a difference, and all others. The names are in the
// order of look-ups.
const (
	ownHost = "1-host"
	all     = "2-all"
)

// How an endpoint is chosen: there is one; by chance; by the client's address.
const (
	one    = "one"
	shares = "shares"
	affine = "affine"
)

// targets is a map from a Service's address, protocol and port, with an interval of numbers where there are
// several endpoints, to an endpoint.
func targets(who, choice string, f world.Family) string {
	return "services/" + who + "/" + choice + "." + f.String()
}

// Sets of a Service's addresses, protocols and ports: those whose clients' addresses are kept, and those whose clients
// get the address of this host; those that have no endpoint here; those that only some clients may use, and with each
// its clients.
const (
	setKept       = "kept"
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
	family world.Family
	out    *plan.Rows
}

func (k kernel) ip() string { return [...]string{"ip", "ip6"}[k.family] }

func (k kernel) frontend() string { return k.ip() + " daddr . meta l4proto . th dport" }

// sets declares them. A number has no type of its own in nftables: typeof gives it one.
func (k kernel) sets() {
	address := [...]string{"ipv4_addr", "ipv6_addr"}[k.family]
	key, value := address+" . inet_proto . inet_service", address+" . inet_service"
	for _, who := range []string{ownHost, all} {
		k.set(targets(who, one, k.family), plan.NFTSetSpec{Key: key, Value: value})
		for _, choice := range []string{shares, affine} {
			k.set(targets(who, choice, k.family), plan.NFTSetSpec{
				Key:   fmt.Sprintf("%s . numgen random mod %d", k.frontend(), modulus),
				Value: k.ip() + " daddr . th dport", Interval: true, TypeOf: true,
			})
		}
	}
	for _, name := range []string{setKept, setHidden, setRefused, setRestricted} {
		k.set(frontendSet(name, k.family), plan.NFTSetSpec{Key: key})
	}
	k.set(frontendSet(setClients, k.family), plan.NFTSetSpec{Key: address + " . " + key, Interval: true})
}

func (k kernel) set(name string, spec plan.NFTSetSpec) {
	plan.Add(&k.out.NFTSets, plan.NFTSet{Name: name}, spec)
}

const transport = "meta l4proto { tcp, udp, sctp } "

// notFromPods: what comes by the management port has been balanced in OVN.
func notFromPods() string { return fmt.Sprintf("iifname != %q ", plan.DefaultNames().ManagementPort()) }

// refuseClients answers before anything is translated.
func (k kernel) refuseClients() {
	c, own := k.out.AddChain(plan.ChainServicesGuard), k.out.AddChain(plan.ChainOwnServicesGuard)
	for chain, from := range map[plan.NFTChain]string{c: notFromPods(), own: ""} {
		k.rule(chain, "1 clients", from+transport+"%s @%s %s saddr . %s != @%s drop",
			k.frontend(), frontendSet(setRestricted, k.family), k.ip(), k.frontend(), frontendSet(setClients, k.family))
	}
	k.rule(c, "2 refused tcp", notFromPods()+"ct state new meta l4proto tcp %s @%s reject with tcp reset",
		k.frontend(), frontendSet(setRefused, k.family))
	k.rule(c, "3 refused", notFromPods()+"ct state new meta l4proto { udp, sctp } %s @%s reject",
		k.frontend(), frontendSet(setRefused, k.family))
}

// translate looks a new connection up. A client keeps its endpoint by its address alone, as long as the endpoints stay
// the same.
func (k kernel) translate(who string, c plan.NFTChain, match string) {
	for choice, slot := range map[string]string{
		one: "", shares: fmt.Sprintf(" . numgen random mod %d", modulus),
		affine: fmt.Sprintf(" . jhash %s saddr mod %d seed 0x1", k.ip(), modulus),
	} {
		k.rule(c, who+" "+choice, match+transport+"dnat %s to %s%s map @%s", k.ip(), k.frontend(), slot,
			targets(who, choice, k.family))
	}
}

// source keeps the addresses of clients outside where the policy asks for it, before gateway.Firewall masquerades what
// goes to pods. What goes on to another node's host gets this host's address, or the answer would not come back here.
// What the host asks of an endpoint of its own comes from that endpoint's address: a server that is bound to no address
// answers by UDP from the one that its client asks from.
func (k kernel) source() {
	c := k.out.AddChain(plan.ChainPostrouting)
	asked := fmt.Sprintf("ct original %s daddr . meta l4proto . ct original proto-dst", k.ip())
	dev := plan.DefaultNames().ManagementPort()
	const foreign = transport + "fib saddr type != local "
	k.rule(c, "client kept", foreign+"oifname %q %s @%s accept", dev, asked, frontendSet(setKept, k.family))
	k.rule(c, "own endpoint", transport+"oifname \"lo\" ct status dnat snat %[1]s to %[1]s daddr", k.ip())
	k.rule(c, "client masqueraded", foreign+"oifname != %q %s @%s masquerade", dev, asked,
		frontendSet(setHidden, k.family))
}

func (k kernel) rule(c plan.NFTChain, name, format string, args ...any) {
	plan.Add(&k.out.NFTRules, plan.NFTRule{Chain: c, Name: name + " " + k.family.String()}, fmt.Sprintf(format,
		args...))
}
