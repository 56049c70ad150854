package egressservice

import (
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/world"
)

// fallbackCondition says what becomes of the packets that its pods send outside in the families in which it has no
// host: the choice of annotation egret.k8s.ovn.org/when-unassigned. Its message speaks of the families that the Service
// has no ingress IP of, too.
func (o *object) fallbackCondition(p world.Placement) world.Condition {
	service := o.round.W.ServiceSpec(o.s.Key())
	hosted := func(f world.Family) bool { return o.host == world.HostAll || p.HasItems(f) }
	c := o.round.Fallback(handover.Fallback{Object: refTo(o.s), Drop: o.s.DropWhenUnassigned,
		Lacks: func(f world.Family) bool { return o.s.Asks(service, f) && !hosted(f) && !p.InForce[f] },
		Kept:  func(f world.Family) bool { return !hosted(f) && p.InForce[f] },
		Words: handover.FallbackWords{Lacks: "it has no host for %s", Sent: "what pods send outside over %s",
			Leave: "pods leave over %s with their node's address", Until: o.keptUntil()}})
	switch {
	case c.Reason == "" && o.host == "":
		c.Reason, c.Message = decide.ReasonNodeIP, "it has no Service with an address: pods leave as if there were no "+
			"EgressService"
	case c.Reason == "":
		c.Status, c.Reason = "False", decide.ReasonHosted
		c.Message = "in every family that its Service has ingress IPs of, it has a host"
	}
	if which := o.unaskedFamilies(service); which != "" {
		c.Message += "; its Service has no " + which + " ingress IP: over " + which + " pods leave with their node's " +
			"address, unless an EgressIP serves them"
	}
	if o.s.UnassignedProblem != "" {
		c.Message += "; " + o.s.UnassignedProblem
	}
	return c
}

// unaskedFamilies are families of the cluster in which it asks for nothing, though its Service has ingress IPs.
func (o *object) unaskedFamilies(service *world.Service) string {
	return decide.Families(func(f world.Family) bool {
		return service != nil && len(o.round.W.Config.Cluster(f)) > 0 && o.host != world.HostAll &&
			len(service.LoadBalancerIPs) > 0 && !o.s.Asks(service, f)
	})
}

// unreadNotices returns the Event about an annotation that cannot be read.
func (o *object) unreadNotices() []decide.Notice {
	problem := o.s.UnassignedProblem
	if problem == "" {
		return nil
	}
	f := decide.Finding{Kind: "UnreadAnnotation", Detail: problem}
	return []decide.Notice{{Finding: f, Event: ReasonInvalidSpec, Message: problem}}
}
