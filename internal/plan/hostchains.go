package plan

import "fmt"

// HostChain is one base chain of ours in the host's kernel. Chains are claimed by it, so that all of a hook can be seen
// together, in order.
type HostChain uint8

// By hook, in the order in which the kernel goes through them.
const (
	ChainUplink HostChain = iota

	ChainEgressIPMark
	ChainEgressServiceMark
	ChainServicesGuard
	ChainServices

	ChainEgressIPInput

	ChainForward

	ChainOwnServicesGuard
	ChainOwnServices

	ChainEgressServiceTranslate
	ChainEgressIPTranslate
	ChainPostrouting
	ChainEgressIPGuard
	ChainEgressServiceGuard
	ChainClusterIPGuard

	hostChains
)

type hostChain struct {
	chain             NFTChain
	spec              NFTChainSpec
	features, purpose string
}

// A priority is a number, or the name that nft knows it by at that hook: nft before 1.0.7 does not know dstnat (-100)
// at output. mangle is -150, filter 0 and srcnat 100. OVN-KUBE-EGRESS-IP-MULTI-NIC and OVN-KUBE-EGRESS-SVC are
// OVN-Kubernetes' names.
var hostChainRegistry = [hostChains]hostChain{
	ChainUplink: {NFTChain{"netdev", "uplink"}, NFTChainSpec{Type: "filter", Hook: "ingress", Priority: "0",
		Policy: "drop"}, "gateway", "keep from the host what OVS reads through a packet socket"},

	ChainEgressIPMark: inetChain("egress-ip-mark", "filter", "prerouting", "mangle",
		"egressip", "mark what selected pods send by a link, and replies to it"),
	ChainEgressServiceMark: inetChain("egress-service-mark", "filter", "prerouting", "-149",
		"egressservice", "mark what pods behind EgressServices send, and replies to it"),
	ChainServicesGuard: inetChain("services-guard", "filter", "prerouting", "-110",
		"service", "refuse clients, and Services without endpoints"),
	ChainServices: inetChain("services-prerouting", "nat", "prerouting", "dstnat",
		"service", "choose endpoints for others than the host itself"),

	ChainEgressIPInput: inetChain("egress-ip-input", "filter", "input", "filter",
		"egressip", "let nobody but ICMP in at an egress IP on a link"),

	ChainForward: inetChain(ForwardChain, "filter", "forward", "filter",
		"gateway egress egressservice service", "drop what was to be translated elsewhere and was not"),

	ChainOwnServicesGuard: inetChain("services-guard-output", "filter", "output", "-110",
		"service", "refuse the host itself"),
	ChainOwnServices: inetChain("services-output", "nat", "output", "-100",
		"service", "choose endpoints for the host itself"),

	ChainEgressServiceTranslate: inetChain("OVN-KUBE-EGRESS-SVC", "nat", "postrouting", "98",
		"egressservice", "translate to the Service's address"),
	ChainEgressIPTranslate: inetChain("OVN-KUBE-EGRESS-IP-MULTI-NIC", "nat", "postrouting", "99",
		"egressip", "translate to egress IPs on links"),
	ChainPostrouting: inetChain(PostroutingChain, "nat", "postrouting", "srcnat",
		"gateway service", "masquerade what nobody has translated"),
	ChainEgressIPGuard: inetChain("egress-ip-guard", "filter", "postrouting", "101",
		"egressip", "drop what would leave by a link, or past it, with another source"),
	ChainEgressServiceGuard: inetChain("egress-service-guard", "filter", "postrouting", "102",
		"egressservice", "drop what would leave with another source than the Service's"),
	ChainClusterIPGuard: inetChain("cluster-ip-guard", "filter", "postrouting", "103",
		"service", "drop packets to cluster IPs that would leave the cluster"),
}

func inetChain(name, kind, hook, priority, features, purpose string) hostChain {
	return hostChain{NFTChain{"inet", name}, NFTChainSpec{Type: kind, Hook: hook, Priority: priority}, features,
		purpose}
}

// HostChains are all there are.
func HostChains() []HostChain {
	out := make([]HostChain, hostChains)
	for i := range out {
		out[i] = HostChain(i)
	}
	return out
}

// ID is the chain's family and name, and Spec its place at a hook; of ChainUplink the device is not said.
func (c HostChain) ID() NFTChain       { return hostChainRegistry[c].chain }
func (c HostChain) Spec() NFTChainSpec { return hostChainRegistry[c].spec }

// Features are those that have rules there, with spaces between.
func (c HostChain) Features() string { return hostChainRegistry[c].features }

// String is the line in documents.
func (c HostChain) String() string {
	x := hostChainRegistry[c]
	return fmt.Sprintf("%-11s %-6s  %-28s  %-28s  %s", x.spec.Hook, x.spec.Priority, x.chain.Name, x.features,
		x.purpose)
}

// AddChain is that chain.
func (r *Rows) AddChain(c HostChain) NFTChain {
	Add(&r.NFTChains, c.ID(), c.Spec())
	return c.ID()
}
