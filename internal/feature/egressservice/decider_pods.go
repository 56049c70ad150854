package egressservice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// families are both; a pod has an address of those that the cluster has.
var families = [...]world.Family{world.V4, world.V6}

// podServers are the EgressServices with a claim to a pod's packets, by family. One that only has a host has none to
// those that an EgressIP in force claims: no node steers them, or has to, before the EgressService is in force. Those
// that the pod is behind and that have no claim are among them as such.
func podServers(w *world.View, p *world.Pod) []handover.ServedBy {
	var out []handover.ServedBy
	if w.PrimaryNetwork(p.Namespace) != ref.DefaultNetwork {
		return nil
	}
	for _, f := range families {
		behind := w.EgressServicesOf(p, f)
		if len(behind) == 0 || len(f.OfAddrs(w.PodIPs(p, ref.DefaultNetwork))) == 0 {
			continue
		}
		claims := w.Claims(p, ref.DefaultNetwork, f)
		for _, s := range behind {
			if slices.Contains(claims, world.Claim{By: refTo(s)}) {
				out = append(out, handover.ServedBy{By: refTo(s), Family: f, Node: p.Node})
			} else {
				out = append(out, handover.NotServedBy(refTo(s), f, p.Node, claims)...)
			}
		}
	}
	return out
}

// podStandbys are the EgressServices that a pod is an endpoint of, and that would decide about its packets if another
// did not: another EgressService, or an EgressIP that forbids it.
func podStandbys(w *world.View, p *world.Pod) []handover.Overlap {
	var out []handover.Overlap
	for _, f := range families {
		server := ref.Object{}
		first := w.EgressServiceOf(p, f)
		if e := w.Forbids(p, f); e != nil {
			server = ref.Of(ref.EgressIP, e.Name)
		} else if first != nil {
			server = refTo(first)
		}
		for _, s := range w.EgressServicesOf(p, f) {
			if s != first && w.EgressServiceActive(s.Key(), f) {
				out = append(out, handover.Overlap{By: s.Key(), Server: server})
			}
		}
	}
	return out
}

// standbyOf says which EgressServices decide about all running pods of one; false if one of these is its own, or it has
// none.
func (d *Decider) standbyOf(w *world.View, s *world.EgressService) (handover.Standby, bool) {
	for _, f := range families {
		if len(d.served.Nodes(refTo(s), f)) > 0 {
			return handover.Standby{}, false
		}
	}
	return d.overlaps.Standing(w, s.Key(), behind, ref.EgressService)
}

// overrideAnnotation is api/v1's AnnotationOverride.
const overrideAnnotation = "egret.k8s.ovn.org/override-by-egress-services"

// behind is what pods are to an EgressService.
const behind = "behind its Service"

// overlapCondition says whether other EgressServices decide about pods of one, and the Event when that begins.
func (d *Decider) overlapCondition(w *world.View, s *world.EgressService) (world.Condition, []decide.Event) {
	c := world.Condition{Type: ConditionOverlapped, Status: "False", Reason: ReasonNoOverlap,
		Message: "no other EgressService decides about a pod behind this one's Service"}
	standing, is := d.overlaps.Standing(w, s.Key(), behind, ref.EgressService)
	if !is {
		return c, nil
	}
	c.Status, c.Reason = "True", standing.Reason
	c.Message = fmt.Sprintf("%s; the oldest EgressService that is in force %s a pod", standing.Text, standing.Others)
	if strings.Contains(standing.Text, ref.EgressIP+"/") {
		c.Message += ", but none one of an EgressIP with annotation " + overrideAnnotation + "=never"
	}
	if decide.Condition(s.Conditions, ConditionOverlapped).Status == "True" {
		return c, nil
	}
	return c, []decide.Event{{Warning: true, Reason: EventOverlap, Message: c.Message}}
}
