// Package egressip compiles EgressIPs: which source address selected pods leave with, and through which node.
//
// In: EgressIPs with the assignment that the controller wrote, the pods they select, and what each node says it holds.
// Out, on a pod's node: the pod in a set, and one policy an EgressIP that steers the set to the holders, or drops. Out,
// on a holder: the pods in a set, and one NAT row an address. README.md walks a packet through it; assign.go is the
// controller's half.
package egressip

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Pods makes a pod a member of the sets that decide about it. Its unit is the pod, for it is what objects have claims
// to.
type Pods struct{}

func (Pods) Name() string    { return "egressip-pod" }
func (Pods) Per() world.Kind { return world.KindPod }

// Compile adds one pod's memberships.
func (Pods) Compile(w *world.View, key string, out *plan.Rows) {
	p := w.Pod(key)
	if _, _, ok := w.Zone(); !ok || p == nil {
		return
	}
	tellTaken(w, p, out)
	name := w.PrimaryNetwork(p.Namespace)
	n, here := networkHere(w, name)
	for _, f := range w.Config.Families() {
		claims := w.Claims(p, name, f)
		if name != ref.DefaultNetwork && blockOtherWays(w, p, name, f, claims, out) || !here {
			continue
		}
		dropUncovered(w, n, p, f, out)
		for _, c := range claims {
			if c.By.Kind == ref.EgressIP {
				n.servePod(w, w.EgressIP(c.By.Name), f, p, out)
			}
		}
	}
}

// servePod adds a pod's memberships that follow from an EgressIP's claim.
func (n logicalNetwork) servePod(w *world.View, e *world.EgressIP, f world.Family, p *world.Pod, out *plan.Rows) {
	rows := out.For(ownerOfPods(e.Name))
	for _, ip := range f.OfAddrs(egress.Addresses(w, p, n.Network)) {
		if p.Node == w.Self {
			steerPod(w, n, e, f, p, ip, rows)
		}
		if router, source, ok := translatePod(w, n, e, f, p, ip, rows); ok {
			out.AddSource(plan.Source{Router: router, Pod: ip},
				plan.SourceTo{To: sourceDestinations(e, f), IP: source})
		}
	}
}

// tellTaken says that a pod of this node says that it has another's address, which it has not. One that is going away
// may have lost it to a successor.
func tellTaken(w *world.View, p *world.Pod, out *plan.Rows) {
	if p.Node != w.Self || p.Terminating {
		return
	}
	for _, a := range w.Taken(p) {
		text := fmt.Sprintf("pod %s says that it has address %s, which is pod %s's: it counts as without it; "+
			"remove its annotation k8s.ovn.org/pod-networks, or delete the pod", p.Key(), a.IP, a.Owner)
		object := ref.Object{Kind: ref.Pod, Namespace: p.Namespace, Name: p.Name}
		problem := plan.Problem{Object: object, Reason: world.ReasonAddressTaken, Message: text}
		plan.Add(&out.Problems, problem, plan.None{})
	}
}

// ownerOfPods owns what pods claim of an EgressIP. It is not the owner of what the EgressIP itself claims, where it is
// hosted: a node whose own pods cannot be steered goes on translating for others.
func ownerOfPods(egressIP string) plan.Owner {
	return plan.Owner{Feature: "egressip-pods", Object: refTo(egressIP)}
}

// steerPod puts a pod of this node under its EgressIP's policy. Every such pod claims the policy and its set: the first
// brings them and the last takes them away, so that a node holds nothing for EgressIPs that none of its pods use.
func steerPod(
	w *world.View, n logicalNetwork, e *world.EgressIP, f world.Family, p *world.Pod, ip netip.Addr, out *plan.Rows,
) {
	s := n.steerPods(w, e, f)
	egress.TellUnanswered(w, refTo(e.Name), f, e.Items, out)
	if s.action == "" {
		if a := w.Attachment(p.Key()); a != nil && a.EgressPaused {
			pauseClaim(w, n, e, f, ip, out)
		}
		return
	}
	at := world.PodAddr{Network: n.ID, IP: ip}
	if egress.Waits(w, refTo(e.Name), at, s.nodes) {
		egress.TellWaits(w, refTo(e.Name), at, s.nodes, out)
		pauseClaim(w, n, e, f, ip, out)
		return
	}
	egress.TellUnaware(w, refTo(e.Name), at, s.nodes, out)
	filterClaim(w, n, e, f, ip, out)
	set := n.setName(localPods, e, f)
	out.AddSet(set)
	out.AddElem(set, ip.String())
	s.addPolicy(n, e, f, set, out)
}

// pauseClaim has a pod send nothing outside the cluster to an EgressIP's destinations.
func pauseClaim(w *world.View, n logicalNetwork, e *world.EgressIP, f world.Family, ip netip.Addr, out *plan.Rows) {
	if e.Traffic == nil {
		egress.Pause(w, n.Names, f, ip, out)
		return
	}
	dropClaim(w, n, e, f, ip, pausedPodsOf, plan.PriorityEgressIP, out)
}

// dropClaim drops what a pod of this node, a member of a set, sends to an EgressIP's destinations.
func dropClaim(
	w *world.View, n logicalNetwork, e *world.EgressIP, f world.Family, ip netip.Addr, of contents, priority int,
	out *plan.Rows,
) {
	set := n.setName(of, e, f)
	out.AddSet(set)
	out.AddElem(set, ip.String())
	match := f.Match() + ".src == " + plan.InSet(set) + onlyTo(e, f)
	out.AddPolicy(n.Names, of.setName(e, f), priority, match, "drop", nil, nil)
	filterClaim(w, n, e, f, ip, out)
}

// translatePod puts a pod, of any node, among those that a holder translates, unless it is not known which of the pod's
// packets are the EgressIP's. It returns where on this node that is, and to which address.
func translatePod(
	w *world.View, n logicalNetwork, e *world.EgressIP, f world.Family, p *world.Pod, ip netip.Addr, out *plan.Rows,
) (router string, source netip.Addr, ok bool) {
	duties := holder.Duties(w, e.Name, f)
	if len(duties) == 0 || e.TrafficUnknown {
		return "", netip.Addr{}, false
	}
	switch primary, link := w.Host().LinkFor(duties[0].IP); {
	case n.ID > 0:
		return n.GatewayRouter(w.Self), duties[0].IP, primary && n.markPod(w, e, f, ip, out)
	case link != nil:
		podOnLink(w, e, p, ip, duties[0].IP, out)
		return plan.HostKernel, duties[0].IP, true
	case primary:
		out.AddElem(allPods.setName(e, f), ip.String())
		return plan.DefaultNames().GatewayRouter(w.Self), duties[0].IP, true
	}
	return "", netip.Addr{}, false
}
