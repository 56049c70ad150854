// Package egressservice compiles EgressServices: which source address the pods behind a Service leave with, through
// which node, and by which routing table of hosts.
//
// In: EgressServices with the host that the controller wrote, the endpoints of their Services, what each node says it
// holds, and this host's routing tables. Out, on a pod's node: the pod in a set, and one policy an EgressService that
// steers the set to the host, or drops. Out, on a host: the pods in a set, and the rules of its kernel that mark, route
// and translate what they send. README.md walks a packet through it.
package egressservice

import (
	"net/netip"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

const namePrefix = "egressservice/"

// Ids of sets. Their members are all that grows with the number of pods. localPods is of this node's pods, and
// remotePods of others': two policies of one priority and one match would act in an undefined order.
func localPods(s *world.EgressService, f world.Family) string {
	return namePrefix + s.Key() + "/" + egress.LocalPods + "." + f.String()
}
func remotePods(s *world.EgressService, f world.Family) string {
	return namePrefix + s.Key() + "/remote." + f.String()
}

// hostPods names the set in nftables of all pods that this host translates to a source address, or routes where the
// address is zero. Each address has its own set. An agent can learn in one round that a pod has left the Service and
// that the Service has another address; a set loses its members later than the rules change.
func hostPods(s *world.EgressService, f world.Family, source netip.Addr) string {
	name := egress.Short(s.Key())
	if source.IsValid() {
		name = egress.ShortFor(s.Key(), source)
	}
	return namePrefix + name + "/pods." + f.String()
}

// Pods makes a pod a member of the sets that decide about it.
type Pods struct{}

func (Pods) Name() string    { return "egressservice-pod" }
func (Pods) Per() world.Kind { return world.KindPod }

// Compile adds one pod's memberships.
func (Pods) Compile(w *world.View, key string, out *plan.Rows) {
	p := w.Pod(key)
	if p == nil {
		return
	}
	for _, f := range w.Config.Families() {
		s := servingFor(w, p, f)
		if _, _, ok := w.Zone(); s == nil || !ok {
			continue
		}
		rows := out.For(plan.Owner{Feature: "egressservice-pods", Object: refTo(s)})
		for _, ip := range f.OfAddrs(egress.Addresses(w, p, ref.DefaultNetwork)) {
			if p.Node == w.Self {
				steerPod(w, s, f, p, ip, rows)
			}
			if source, ok := translatePod(w, s, f, p, ip, rows); ok {
				out.AddSource(plan.Source{Router: plan.HostKernel, Pod: ip}, source)
			}
		}
	}
}

// servingFor is the EgressService that has the claim to a pod's packets of a family, or nil.
func servingFor(w *world.View, p *world.Pod, f world.Family) *world.EgressService {
	if w.EgressServiceOf(p, f) == nil {
		return nil // as for nearly all, at the cost of one look
	}
	for _, c := range w.Claims(p, ref.DefaultNetwork, f) {
		if c.By.Kind == ref.EgressService {
			return w.EgressService(c.By.Key())
		}
	}
	return nil
}

func refTo(s *world.EgressService) ref.Object { return ref.Of(ref.EgressService, s.Key()) }

func egressOf(s *world.EgressService, ip netip.Addr) plan.Egress {
	return plan.Egress{Object: refTo(s), Network: ref.DefaultNetwork, IP: ip}
}

// steerPod puts a pod of this node under its EgressService's policy. Every such pod claims the policy and its set: the
// first brings them and the last takes them away.
func steerPod(w *world.View, s *world.EgressService, f world.Family, p *world.Pod, ip netip.Addr, out *plan.Rows) {
	to := steerPods(w, s, f, out)
	egress.TellUnanswered(w, refTo(s), f, s.Items, out)
	if to.action == "" {
		if a := w.Attachment(p.Key()); a != nil && a.EgressPaused {
			egress.Pause(w, plan.DefaultNames(), f, ip, out)
		}
		return
	}
	if egress.Waits(w, refTo(s), world.PodAddr{IP: ip}, to.nextHopNodes()) {
		egress.TellWaits(w, refTo(s), world.PodAddr{IP: ip}, to.nextHopNodes(), out)
		egress.Pause(w, plan.DefaultNames(), f, ip, out)
		return
	}
	egress.TellUnaware(w, refTo(s), world.PodAddr{IP: ip}, to.nextHopNodes(), out)
	egress.Filter(w, plan.DefaultNames(), f, ip, out)
	set := localPods(s, f)
	out.AddSet(set)
	out.AddElem(set, ip.String())
	to.addPolicy(s, f, set, out)
}

// translatePod puts a pod among those whose packets this host translates, or with HostAll routes: then its own pods
// alone. It returns the source that their connections must have.
func translatePod(
	w *world.View, s *world.EgressService, f world.Family, p *world.Pod, ip netip.Addr, out *plan.Rows,
) (source plan.SourceTo, ok bool) {
	source.To, source.Mark = plan.Everywhere, networkOf(w, s).mark
	if s.Host == world.HostAll {
		if p.Node != w.Self {
			return source, false
		}
	} else {
		duties := holder.Duties(w, s.Key(), f)
		if len(duties) == 0 {
			return source, false
		}
		source.IP = duties[0].IP
		if p.Node != w.Self {
			out.AddElem(remotePods(s, f), ip.String())
		}
	}
	plan.Add(&out.NFTElems, plan.NFTElem{Set: hostPods(s, f, source.IP), Key: ip.String()}, "")
	return source, true
}
