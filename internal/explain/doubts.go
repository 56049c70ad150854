package explain

import (
	"fmt"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// listDoubts are what decides about a pod's packets to the outside, and is known to nodes alone.
func listDoubts(w *world.World, pod *world.Pod, f world.Family) []string {
	var out []string
	for _, c := range w.Claims(pod, w.PrimaryNetwork(pod.Namespace), f) {
		if c.By.Kind == ref.EgressService {
			out = append(out, doubtsOf(w.EgressService(c.By.Key()), c.By)...)
		} else if e := w.EgressIP(c.By.Name); e.TrafficUnknown && (e.InForce[f] || e.DropWhenUnassigned) {
			out = append(out, fmt.Sprintf("spec.trafficSelector of %s cannot be read: agents go by the former one, "+
				"and those that have started since drop what it may be about", c.By))
		}
	}
	return out
}

// listDrops returns why the pod's node may drop a packet that leaves by what the API has.
func (d decision) listDrops() (out []string) {
	if len(d.outsideEnds()) == 0 {
		return nil
	}
	for _, c := range d.w.Claims(d.pod, d.w.PrimaryNetwork(d.pod.Namespace), d.family) {
		text, reason := d.w.ProblemReason(d.pod.Node, c.By.Key())
		switch {
		case !d.isClaimed(c):
		case d.awaitsHolder(c):
			out = append(out, fmt.Sprintf("no node is ready for %s: a pod that started meanwhile sends nothing outside "+
				"until one is, and has an Event %sNotReady; an earlier pod leaves with its node's address", c.By,
				c.By.Kind))
		case reason == world.ReasonUnfollowed || reason == world.ReasonUnserved:
			out = append(out, fmt.Sprintf("%s says of %s: %s", plainText(d.pod.Node), c.By, plainText(text)))
		}
	}
	return out
}

// awaitsHolder reports whether packets leave with their node's address because no node holds one of an EgressIP yet.
// The node drops them of a pod that started meanwhile, and the API does not say which pods did.
func (d decision) awaitsHolder(c world.Claim) bool {
	return c.By.Kind == ref.EgressIP && len(d.outsideEnds()) > 0 && !d.isHeld(c.By) && !d.isSource(c.By)
}

// Elsewhere is what another node than the one that is asked knows of a pod's packet: the routing table of a host.
func Elsewhere(w *world.World, pod *world.Pod, p trace.Packet) []string {
	var out []string
	f := world.FamilyOf(p.Dst)
	for _, c := range w.Claims(pod, w.PrimaryNetwork(pod.Namespace), f) {
		if s := w.EgressService(c.By.Key()); c.By.Kind == ref.EgressService && s.Table != (world.RoutingTable{}) &&
			s.Host != w.Self && s.Host != world.HostAll {
			out = append(out, fmt.Sprintf("%s routes by table %s of %s, which alone knows where that leads: where it "+
				"has no route, by the host's own routing", c.By, plainText(s.Table.String()), plainText(s.Host)))
		}
	}
	return out
}

func doubtsOf(s *world.EgressService, o ref.Object) []string {
	source := ""
	if s.Host == world.HostAll {
		source = "; packets have the address of the link"
	}
	switch {
	case s.Table != (world.RoutingTable{}):
		return []string{fmt.Sprintf("%s routes by table %s of hosts, and where that has no route, by hosts' own "+
			"routes%s", o, plainText(s.Table.String()), source)}
	case s.Host == world.HostAll:
		return []string{fmt.Sprintf("%s routes by hosts' own routes%s", o, source)}
	}
	return nil
}
