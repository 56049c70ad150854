package egressip

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

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
	ReasonHosted            = "Hosted"
	ReasonNodeIP            = "NodeIP"
	ReasonDrop              = "Drop"
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
	EventFallback    = "FellBack"
	EventNodeProblem = "NodeProblem"
)

// refusal says why an address is not placed: the Event's reason, the condition's, and what is wrong and what to do. Head is how the text of
// every refusal of the address for this reason begins, and of no other; the rest may become different while it stays refused.
type refusal struct{ event, condition, head, rest string }

func (r refusal) text() string { return r.head + r.rest }

// toldIn says whether a message of condition Assigned tells of a refusal of the address for the same reason.
func (r refusal) toldIn(message string) bool {
	return slices.ContainsFunc(strings.Split(message, "; "), func(part string) bool { return strings.HasPrefix(part, r.head) })
}

func conflict(ip netip.Addr, with string) refusal {
	return refusal{EventConflict, ReasonConflict, ip.String() + " is ", with + ": use a free address of an egress node's network"}
}

func claimedBy(ip netip.Addr, e *world.EgressIP) refusal {
	return refusal{EventUnsupported, ReasonConflict, ip.String() + " belongs to the older EgressIP ", e.Name + ": use another address, or remove it there"}
}

func stillGivenBy(ip netip.Addr, by givenUp) refusal {
	return refusal{EventUnassigned, ReasonWaitingForNode, ip.String() + " is still on node ", by.node + " by the status of EgressIP " + by.egressIP +
		", which does not name it any more: if that lasts, see the log of egret-controller for why the status cannot be written"}
}

// forbid finds the requested addresses that are somebody else's; who is named last here, is named.
func (a *assigner) forbid() {
	for ip := range a.owner {
		if r, is := a.reserved(ip); is {
			a.refused[ip] = r
		}
	}
	a.refuse("the address of pod ", a.asked(a.podAddresses))
	a.refuse("the cluster IP of Service ", a.asked(a.serviceAddresses))
	a.doubt("the external or load-balancer IP of Service ", a.asked(a.frontAddresses))
	a.doubt("the network address of ", a.asked(a.endsOf(networkAddress)))
	a.doubt("the broadcast address of ", a.asked(a.endsOf(broadcastAddress)))
	a.doubt("the gateway of node ", a.asked(a.gatewayAddresses))
	a.doubt("an address of node ", a.asked(a.nodeAddresses))
}

// found is told of an address and of whose it is.
type found func(ip netip.Addr, whose func() string)

func (a *assigner) podAddresses(found found) {
	for p := range a.w.EachPod() {
		if p.HostNetwork || p.Completed {
			continue
		}
		for _, ip := range a.w.PodIPs(p) {
			found(ip, p.Key)
		}
	}
}

func (a *assigner) serviceAddresses(found found) {
	for _, key := range a.w.Services() {
		s := a.w.Service(key)
		for _, ip := range s.ClusterIPs {
			found(ip, s.Key)
		}
	}
}

// frontAddresses are those by which the outside reaches Services.
func (a *assigner) frontAddresses(found found) {
	for _, key := range a.w.Services() {
		s := a.w.Service(key)
		for _, ip := range slices.Concat(s.LoadBalancerIPs, s.ExternalIPs) {
			found(ip, s.Key)
		}
	}
}

// endsOf yields the addresses at either end of the egress nodes' networks, which are no host's: the network's own (of IPv6 all routers', RFC 4291 2.6.1), and
// of IPv4 the broadcast address. Networks of one or two addresses have none (RFC 3021, RFC 6164).
func (a *assigner) endsOf(end func(netip.Prefix) netip.Addr) func(found) {
	return func(found found) {
		for _, cidrs := range []map[netip.Prefix]naming{a.named.primary, a.named.secondary} {
			for p, by := range cidrs {
				ip := end(p)
				_, asked := a.owner[ip]
				if asked && p.Bits() < p.Addr().BitLen()-1 && a.isEnd(ip, by) {
					found(ip, p.String)
				}
			}
		}
	}
}

// isEnd says whether an address at an end of a subnet is no host's: not by the word of one node, where another egress node has it in the midst of another.
func (a *assigner) isEnd(ip netip.Addr, by naming) bool {
	return by.agreed() || by.lone() && !a.named.othersHave(ip, by.name).IsValid()
}

func networkAddress(p netip.Prefix) netip.Addr { return p.Masked().Addr() }

// broadcastAddress is zero of IPv6.
func broadcastAddress(p netip.Prefix) netip.Addr {
	if p.Addr().Is6() {
		return netip.Addr{}
	}
	return world.Nth(p, 1<<(32-p.Bits())-1)
}

// gatewayAddresses are the next hops of nodes' default routes. The nodes of a network name the same ones: what one node
// names alone is kept from nobody, where another egress node has that address in a network of its own.
func (a *assigner) gatewayAddresses(found found) {
	by := map[netip.Addr][]string{}
	for _, name := range a.names {
		for _, ip := range a.w.Node(name).Gateways {
			if _, asked := a.owner[ip]; asked && !slices.Contains(by[ip], name) {
				by[ip] = append(by[ip], name)
			}
		}
	}
	for ip, nodes := range by {
		if len(nodes) > 1 || !a.named.othersHave(ip, nodes[0]).IsValid() {
			found(ip, func() string { return nodes[0] })
		}
	}
}

func (a *assigner) nodeAddresses(found found) {
	for _, name := range a.w.Nodes() {
		n, whose := a.w.Node(name), func() string { return name }
		for _, ip := range n.HostAddrs {
			found(ip, whose)
		}
		for _, p := range n.Primary {
			found(p.Addr(), whose)
		}
	}
}

// asked gathers whose the requested addresses are: the first by name. There are more pods than requests, so that the requests
// are what is kept.
func (a *assigner) asked(all func(found)) map[netip.Addr]string {
	owners := map[netip.Addr]string{}
	all(func(ip netip.Addr, whose func() string) {
		if _, asked := a.owner[ip]; !asked {
			return
		}
		if old, is := owners[ip]; !is || whose() < old {
			owners[ip] = whose()
		}
	})
	return owners
}

// doubt refuses an address unless it has a node by the status of its EgressIP: neither another node's word nor a Service takes that away, and it may
// move. Where two machines really have an address, its holder hears the other (AddressConflict). One that no node can host is not placed again.
func (a *assigner) doubt(what string, whose map[netip.Addr]string) {
	for ip, name := range whose {
		a.doubted[ip] = conflict(ip, what+name)
		if !slices.ContainsFunc(a.owner[ip].Items, func(i world.Assignment) bool { return i.IP == ip }) {
			a.refused[ip] = a.doubted[ip]
		}
	}
}

func (a *assigner) refuse(what string, whose map[netip.Addr]string) {
	for ip, name := range whose {
		a.refused[ip] = conflict(ip, what+name)
	}
}

// reserved says whether an address is one that nobody outside the cluster can answer to.
func (a *assigner) reserved(ip netip.Addr) (refusal, bool) {
	if !ip.IsGlobalUnicast() {
		return refusal{EventInvalid, ReasonInvalidEgressIP, ip.String() + " cannot be a source outside the node", ": use a free address of an egress node's network"}, true
	}
	if p, what := a.w.Config.Reserved(ip); what != "" {
		return conflict(ip, "in the cluster's "+what+" subnet "+p.String()), true
	}
	return refusal{}, false
}

// nowhere is why an address that had a node has none now: what it is refused for from here on, if anything.
func (a *assigner) nowhere(ip netip.Addr) refusal {
	if r, is := a.doubted[ip]; is {
		return r
	}
	return a.noHost(ip)
}

// noHost says why no node takes an address.
func (a *assigner) noHost(ip netip.Addr) refusal {
	if a.possible(ip) > 0 {
		return noNode(ip, ", because a node hosts one address of an EgressIP: label another node of its network")
	}
	labelled, not := a.unfitFor(ip)
	switch {
	case labelled == 0:
		return noNode(ip, ": label a node of its network")
	case len(not) > 0:
		return noNode(ip, " ("+some(not)+"): mend one of these, or label another node of its network")
	}
	return refusal{EventNoNode, ReasonNoNodeInNetwork, fmt.Sprintf("no node can host %s: it is in no egress node's network", ip),
		fmt.Sprintf(" (%s): use an address of one, or label a node of its network %s", a.networks(world.FamilyOf(ip)), AssignableLabel)}
}

func noNode(ip netip.Addr, rest string) refusal {
	return refusal{EventNoNode, ReasonNoAssignableNode, fmt.Sprintf("no node can host %s now", ip), rest + " " + AssignableLabel}
}

// unfitFor counts the labelled nodes, and lists those that would do if they were well.
func (a *assigner) unfitFor(ip netip.Addr) (labelled int, not []string) {
	for _, name := range a.w.Nodes() {
		n := a.w.Node(name)
		if _, ok := n.Labels[AssignableLabel]; !ok {
			continue
		}
		labelled++
		if why := a.unfit(n); why != "" && (a.inNetwork(n, ip) || len(n.Primary) == 0) {
			not = append(not, name+" "+why)
		} else if fault := a.faultFor(n, ip); fault != "" {
			not = append(not, name+": "+fault)
		}
	}
	return labelled, not
}

func (a *assigner) networks(f world.Family) string {
	if len(a.nets[f]) == 0 {
		return "there is none for IP" + f.String()
	}
	var s []string
	for _, n := range a.nets[f] {
		s = append(s, n.cidr.String())
	}
	slices.Sort(s)
	return some(s)
}

// some is a list for people: not more than five of it.
func some(list []string) string {
	if n := len(list); n > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:5], ", "), n-5)
	}
	return strings.Join(list, ", ")
}
