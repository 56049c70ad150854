package egressservice

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// steering is what a pod's node does with a pod's packets of a family.
type steering struct {
	action string // "reroute"; "drop"; "": the path that the pod had, with its node's own address
	hop    netip.Addr
	to     world.Assignment // the node that the next hop leads to, with the address; with HostAll that is unspecified
	ahead  plan.Ahead       // that node does not say yet that it holds the address
}

// steerPods reroutes to the host that is ready, and drops while the EgressService binds and none is; or then, for up to
// a second, reroutes to the one that is about to be: a host that gets another address need not stop, and what comes to
// any other before it translates is dropped there (holder.Leads). With HostAll that is this very node. A gap in its
// routing table is a problem of the EgressService, where it has pods: these leave by the host's own routing, or not at
// all where the EgressService asks for that.
func steerPods(w *world.View, s *world.EgressService, f world.Family, out *plan.Rows) steering {
	dropped := steering{}
	if w.EgressServiceBinds(s.Key(), f) {
		dropped.action = "drop"
	}
	if s.Host == world.HostAll {
		by := networkOf(w, s)
		by.reportProblems(w, s, out)
		if hop, has := egress.Management(w.Node(w.Self), f); has && (by.leadsFamily(f) || !s.DropWhenUnassigned) {
			return steering{action: "reroute", hop: hop, to: world.Assignment{Node: w.Self, IP: f.Unspecified()}}
		}
		return dropped
	}
	ip, ok := sourceOf(s, f)
	if !ok {
		return dropped
	}
	leads := holder.LeadsOf(w, s.Key(), ip)
	node, ahead := cmp.Or(leads.Ready, leads.LastResort), false
	if node == "" && dropped.action != "" {
		node, ahead = leads.Promised, true
	}
	if hop, ok := nextHop(w, node, f); ok {
		return steering{"reroute", hop, world.Assignment{Node: node, IP: ip}, plan.Ahead(ahead)}
	}
	return dropped
}

// nextHopNodes are those that packets are led to.
func (t steering) nextHopNodes() []string {
	if t.to.Node == "" {
		return nil
	}
	return []string{t.to.Node}
}

// sourceOf is the address of a family that pods are to leave with: assigned, or else left last.
func sourceOf(s *world.EgressService, f world.Family) (netip.Addr, bool) {
	for _, a := range s.Items {
		if world.FamilyOf(a.IP) == f {
			return a.IP, true
		}
	}
	for i := range s.Leaving {
		if l := s.Leaving[len(s.Leaving)-1-i]; world.FamilyOf(l.IP) == f {
			return l.IP, true
		}
	}
	return netip.Addr{}, false
}

// nextHop is the management port of this node, or the transit address of another one.
func nextHop(w *world.View, node string, f world.Family) (netip.Addr, bool) {
	n := w.Node(node)
	if node == "" || n == nil {
		return netip.Addr{}, false
	}
	if node == w.Self {
		return egress.Management(n, f)
	}
	return w.Config.Transit(n.ID, f).Addr(), true
}

// addPolicy adds the policy of the pods of a set.
func (t steering) addPolicy(s *world.EgressService, f world.Family, pods string, out *plan.Rows) {
	var hops []string
	if t.action == "reroute" {
		hops = []string{t.hop.String()}
	}
	id, match := namePrefix+s.Key()+"/"+f.String(), f.Match()+".src == "+plan.InSet(pods)
	out.AddPolicy(plan.DefaultNames(), id, plan.PriorityEgressService, match, t.action, hops, nil)
	if t.action == "drop" {
		plan.Add(&out.Steered, plan.Dropped(egressOf(s, f.Unspecified())), plan.Ahead(false))
	}
	if t.to.Node != "" {
		to := plan.Steered{Egress: egressOf(s, t.to.IP), Node: t.to.Node, Since: s.Since(t.to)}
		if s.Host == world.HostAll {
			to.Since = s.Since(world.Assignment{Node: world.HostAll, IP: t.to.IP})
		}
		plan.Add(&out.Steered, to, t.ahead)
	}
}

// Waiting is the EgressService with a claim to packets of a pod of this node that no host is ready for: a pod that
// starts waits for this to end. Zero: it need not.
func Waiting(w *world.View, key string) ref.Object {
	p := w.Pod(key)
	if p == nil {
		return ref.Object{}
	}
	for _, f := range w.Config.Families() {
		s := servingFor(w, p, f)
		if s == nil {
			continue
		}
		to := steerPods(w, s, f, &plan.Rows{})
		waits := func(ip netip.Addr) bool { return egress.Waits(w, refTo(s), world.PodAddr{IP: ip}, to.nextHopNodes()) }
		ips := f.OfAddrs(egress.Addresses(w, p, ref.DefaultNetwork))
		if to.action != "reroute" || bool(to.ahead) || slices.ContainsFunc(ips, waits) {
			return refTo(s)
		}
	}
	return ref.Object{}
}
