package egressip

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// Reasons of Events and conditions, as api/v1 documents them.
const (
	ReasonAssigned          = "Assigned"
	ReasonPartiallyAssigned = "PartiallyAssigned"
	ReasonNoAssignableNode  = "NoAssignableNode"
	ReasonNoNodeInNetwork   = "NoNodeInNetwork"
	ReasonInvalidEgressIP   = "InvalidEgressIP"
	ReasonInvalidSelector   = "InvalidSelector"
	ReasonConflict          = "EgressIPConflict"
	ReasonWaitingForNode    = "WaitingForNode"
	ReasonHeld              = "Held"
	ReasonNotHeld           = "NotHeld"
	ReasonHosted            = decide.ReasonHosted
	ReasonNodeIP            = decide.ReasonNodeIP
	ReasonDrop              = decide.ReasonDrop
	ReasonServedByOther     = "ServedByOther"
	ReasonNoOverlap         = "NoOverlap"

	EventAssigned    = "Assigned"
	EventMoved       = "Moved"
	EventReleased    = "Released"
	EventConflict    = "EgressIPConflict"
	EventUnsupported = "UnsupportedRequest"
	EventInvalid     = "InvalidEgressIP"
	EventNoNode      = "NoMatchingNodeFound"
	EventUnassigned  = "UnassignedRequest"
	EventOverlap     = "UndefinedRequest"
	EventFallback    = decide.EventFallback
	EventNodeProblem = "NodeProblem"
)

// refusal says why an address is not placed: the Event's reason, the condition's, and what is wrong and what to do.
// While the reasons stay what they are, the text may become different without another Event.
type refusal struct{ event, condition, text string }

func conflictRefusal(ip netip.Addr, with string) refusal {
	text := ip.String() + " is " + with + ": use a free address of an egress node's network"
	return refusal{EventConflict, ReasonConflict, text}
}

func claimedBy(ip netip.Addr, e *world.EgressIP) refusal {
	text := ip.String() + " belongs to the older EgressIP " + e.Name + ": use another address, or remove it there"
	return refusal{EventUnsupported, ReasonConflict, text}
}

func stillGivenBy(ip netip.Addr, by givenUp) refusal {
	text := ip.String() + " is still on node " + by.node + " by the status of EgressIP " + by.egressIP +
		", which does not name it any more: if that lasts, see the log of egret-controller for why the status cannot " +
		"be written"
	return refusal{EventUnassigned, ReasonWaitingForNode, text}
}

// standingAt refuses an address that a node has not let go of, of an EgressIP that has no node with it.
func standingAt(ip netip.Addr, h world.HeldFor) refusal {
	return refusal{EventUnassigned, ReasonWaitingForNode, handover.StandingText(ip, h)}
}

// refuseForeign finds the requested addresses that are somebody else's. Of several reasons the last one stands.
func (a *assigner) refuseForeign() {
	clear(a.refused)
	for ip, o := range a.owner {
		if r := o.reserved[slices.Index(o.e.IPs, ip)]; r.event != "" {
			a.refused[ip] = r
		}
		if pod := a.pods.firstPodAt(ip); pod != "" {
			a.refused[ip] = conflictRefusal(ip, "the address of pod "+pod)
		}
	}
	a.refuseAll("the cluster IP of Service ", a.requestedOwners(a.serviceAddresses))
	a.refuseAll("the API server's, by the endpoints of Service ", a.requestedOwners(a.apiServerAddresses))
	a.refuseUnlessKept("the load-balancer IP of Service ", a.requestedOwners(a.balancerAddresses))
	a.refuseUnlessKept("the network address of ", a.requestedOwners(a.endsOf(networkAddress)))
	a.refuseUnlessKept("the broadcast address of ", a.requestedOwners(a.endsOf(broadcastAddress)))
	a.refuseUnlessKept("the gateway of node ", a.requestedOwners(a.gatewayAddresses))
	a.refuseUnlessKept("an address of node ", a.requestedOwners(a.nodeAddresses))
}

// found is told of an address and of whose it is.
type found func(ip netip.Addr, whose string)

func (a *assigner) serviceAddresses(found found) {
	for ip := range a.owner {
		for _, key := range a.w.ServicesAt(ip) {
			if slices.Contains(a.w.ServiceSpec(key).ClusterIPs, ip) {
				found(ip, key)
			}
		}
	}
}

// apiServerAddresses are those of the machines of the control plane, which need be no nodes. They are taken from an
// EgressIP that keeps them as well: nobody but the API servers writes these endpoints, one that stops takes its own out
// until it is back, and a node that had got its address meanwhile would keep all others from reaching it.
func (a *assigner) apiServerAddresses(found found) {
	s := a.w.Service(world.APIServers)
	if s == nil {
		return
	}
	for _, p := range s.Ports {
		for _, e := range p.Endpoints {
			found(e.Addr(), world.APIServers)
		}
	}
}

// balancerAddresses are those of Services' load balancers. An address that only spec.externalIPs name is free: users
// write any address there, and the Service loses it to the EgressIP.
func (a *assigner) balancerAddresses(found found) {
	for ip := range a.owner {
		for _, key := range a.w.ServicesAt(ip) {
			if slices.Contains(a.w.ServiceSpec(key).LoadBalancerIPs, ip) {
				found(ip, key)
			}
		}
	}
}

// endsOf yields the addresses at either end of the egress nodes' networks, which are no host's: the network's own (of
// IPv6 all routers', RFC 4291 2.6.1), and of IPv4 the broadcast address. Networks of one or two addresses have none
// (RFC 3021, RFC 6164).
func (a *assigner) endsOf(end func(netip.Prefix) netip.Addr) func(found) {
	return func(found found) {
		for _, cidrs := range []map[netip.Prefix]naming{a.named.primary, a.named.secondary} {
			for p, by := range cidrs {
				ip := end(p)
				_, asked := a.owner[ip]
				if asked && p.Bits() < p.Addr().BitLen()-1 && a.isEnd(ip, by) {
					found(ip, by.describeSubnet(p))
				}
			}
		}
	}
}

// isEnd says whether an address at an end of a subnet is no host's: not by the word of one node, where another egress
// node has it in the midst of another.
func (a *assigner) isEnd(ip netip.Addr, by naming) bool {
	return by.isAgreed() || by.hasSingleNode() && !a.named.othersHave(ip, by.name).IsValid()
}

func networkAddress(p netip.Prefix) netip.Addr { return p.Masked().Addr() }

// broadcastAddress is zero of IPv6.
func broadcastAddress(p netip.Prefix) netip.Addr {
	if p.Addr().Is6() {
		return netip.Addr{}
	}
	return world.Nth(p, 1<<(32-p.Bits())-1)
}

// gatewayAddresses are the next hops of nodes' default routes. The nodes of a network name the same ones. A gateway
// that only one node names does not keep the address from others, if another egress node has it in a network of its
// own.
func (a *assigner) gatewayAddresses(found found) {
	by := map[netip.Addr][]string{}
	for _, name := range a.world.Nodes() {
		for _, ip := range a.parts[name].node.Gateways {
			if _, asked := a.owner[ip]; asked && !slices.Contains(by[ip], name) {
				by[ip] = append(by[ip], name)
			}
		}
	}
	for ip, nodes := range by {
		if len(nodes) > 1 || !a.named.othersHave(ip, nodes[0]).IsValid() {
			found(ip, nodes[0])
		}
	}
}

func (a *assigner) nodeAddresses(found found) {
	tell := func(n *world.Node, ip netip.Addr) {
		if a.owner[ip] != nil { // words are made of these alone
			found(ip, ofNode(n, ip))
		}
	}
	for _, name := range a.world.Nodes() {
		n := a.parts[name].node
		for _, ip := range n.HostAddrs {
			tell(n, ip)
		}
		for _, p := range n.Primary {
			tell(n, p.Addr())
		}
	}
}

// ofNode names a node that says that it has an address, and whether only its own word says so: misused credentials of a
// node can keep addresses from new EgressIPs, and people must see which node it is.
func ofNode(n *world.Node, ip netip.Addr) string {
	if slices.Contains(n.Record.Addrs, ip) {
		return n.Name
	}
	return n.Name + " by its own word alone"
}

// requestedOwners gathers whose the requested addresses are: the first by name.
func (a *assigner) requestedOwners(all func(found)) map[netip.Addr]string {
	owners := map[netip.Addr]string{}
	all(func(ip netip.Addr, whose string) {
		if _, asked := a.owner[ip]; !asked {
			return
		}
		if old, is := owners[ip]; !is || whose < old {
			owners[ip] = whose
		}
	})
	return owners
}

// refuseUnlessKept refuses an address unless its EgressIP keeps it by its status: neither another node's word nor a
// Service takes that away, it may move, and be without a node. Where two machines really have an address, its holder
// receives the other's claim (AddressConflict).
func (a *assigner) refuseUnlessKept(what string, whose map[netip.Addr]string) {
	for ip, name := range whose {
		if !a.owner[ip].e.Keeps(ip) {
			a.refused[ip] = conflictRefusal(ip, what+name)
		}
	}
}

func (a *assigner) refuseAll(what string, whose map[netip.Addr]string) {
	for ip, name := range whose {
		a.refused[ip] = conflictRefusal(ip, what+name)
	}
}

// reservedRefusal says that an address is one that nobody outside the cluster can answer to; zero if it is not.
func (a *assigner) reservedRefusal(ip netip.Addr) refusal {
	if !ip.IsGlobalUnicast() {
		text := ip.String() + " cannot be a source outside the node: use a free address of an egress node's network"
		return refusal{EventInvalid, ReasonInvalidEgressIP, text}
	}
	if f := world.FamilyOf(ip); !slices.Contains(a.w.Config.Families(), f) {
		text := fmt.Sprintf("%s: the cluster's pods have no addresses of that family: take it off", ip)
		return refusal{EventInvalid, ReasonInvalidEgressIP, text}
	}
	if p, what := a.w.Config.Reserved(ip); what != "" {
		return conflictRefusal(ip, "in the cluster's "+what+" subnet "+p.String())
	}
	return refusal{}
}

// unplacedRefusal is why an address that is not refused has no node.
func (a *assigner) unplacedRefusal(e *world.EgressIP, ip netip.Addr) refusal {
	if _, problem := unreadSelector(e); problem != "" {
		return unreadableRefusal(ip, problem)
	}
	return a.noHost(e, ip)
}

// noHost says why no node takes an address.
func (a *assigner) noHost(e *world.EgressIP, ip netip.Addr) refusal {
	labelled, not := a.unfitFor(e, ip)
	const oneEach = ", because a node hosts one address of an EgressIP"
	switch possible := a.countPossibleHosts(e, ip) > 0; {
	case possible && len(not) > 0:
		return noNode(e, ip, oneEach+", and others cannot ("+decide.Some(not)+
			"): mend one of these, or label another node of its network")
	case possible:
		return noNode(e, ip, oneEach+": label another node of its network")
	case labelled == 0 && a.anyLabelled():
		return noMatch(e, ip)
	case labelled == 0:
		return noNode(e, ip, ": label a node of its network")
	case len(not) > 0:
		return noNode(e, ip, " ("+decide.Some(not)+"): mend one of these, or label another node of its network")
	}
	const text = "no node can host %s: it is in %s (%s): use an address of one, or label a node of its network %s%s"
	return refusal{EventNoNode, ReasonNoNodeInNetwork, fmt.Sprintf(text, ip, noNetwork(e),
		a.selectedNetworks(e, world.FamilyOf(ip)), world.AssignableLabel, soThatItMatches(e))}
}

func noNode(e *world.EgressIP, ip netip.Addr, rest string) refusal {
	text := fmt.Sprintf("no node can host %s now%s %s", ip, rest, world.AssignableLabel)
	return refusal{EventNoNode, ReasonNoAssignableNode, text + soThatItMatches(e)}
}

// unfitFor counts the labelled nodes that an object selects, and lists those that would do if they were well.
func (a *assigner) unfitFor(e *world.EgressIP, ip netip.Addr) (labelled int, not []string) {
	for _, name := range a.world.Nodes() {
		n := a.parts[name].node
		if _, ok := n.Labels[world.AssignableLabel]; !ok || !e.Nodes.SelectsNode(n) {
			continue
		}
		labelled++
		if why := a.parts[name].keepsOut; why != "" && (a.inNetwork(n, ip) || len(n.Primary) == 0) {
			not = append(not, name+" "+why)
		} else if fault := a.faultFor(n, ip); fault != "" {
			not = append(not, name+": "+fault)
		}
	}
	return labelled, not
}

// selectedNetworks are those of the hosts that an object selects.
func (a *assigner) selectedNetworks(e *world.EgressIP, f world.Family) string {
	selected := func(h int) bool { return e.Nodes.SelectsNode(a.hosts[h].node) }
	var s []string
	for _, n := range a.nets[f] {
		if slices.ContainsFunc(n.hosts, selected) {
			s = append(s, n.cidr.String())
		}
	}
	if len(s) == 0 {
		return "there is none for IP" + f.String()
	}
	slices.Sort(s)
	return decide.Some(s)
}
