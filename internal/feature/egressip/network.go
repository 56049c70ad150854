package egressip

import (
	"cmp"
	"net/netip"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Networks keeps pods from the outside that an EgressIP selects and that talk to it by a network beside the default
// one: EgressIPs serve the default network, and with the node's address those pods' packets would have a wrong source.
type Networks struct{}

func (Networks) Name() string    { return "egressip-network" }
func (Networks) Per() world.Kind { return world.KindNetwork }

// Compile adds the policies of one such network: those of Allow for the default one, as far as they are about pods that
// send nothing outside.
func (Networks) Compile(w *world.View, network string, out *plan.Rows) {
	p := w.Part(network)
	if p == nil || network == ref.DefaultNetwork {
		return
	}
	n := plan.Names{Network: p.Name, ID: p.ID}
	for _, f := range p.Families() {
		insideCluster(p.Network, f, out)
		dropPaused(n, f, out)
		toNodes(n, n.Row(egress.PausedPods(f)), "", f, out)
	}
}

// blockUnservedNetworks has a pod of this node send nothing outside, by any network that it is in, while an EgressIP
// has a claim to its packets in a network that EgressIPs do not serve.
func blockUnservedNetworks(w *world.View, p *world.Pod, network string, out *plan.Rows) {
	if p.Node != w.Self {
		return
	}
	for _, f := range w.Config.Families() {
		for _, c := range w.Claims(p, network, f) {
			text := "pods of this node that it selects send nothing outside: their primary network is " +
				cmp.Or(network, "their namespace's own, which does not exist yet") + ", and " + c.By.Kind +
				"s serve the default network only"
			problem := plan.Problem{Object: c.By, Reason: world.ReasonUnserved, Message: text}
			plan.Add(&out.Problems, problem, plan.None{})
			for _, by := range networksOf(w, p) {
				pauseInterface(w, by, f.OfAddrs(egress.Addresses(w, p, by)), out)
			}
		}
	}
}

// networksOf are those that a pod of this node has addresses in.
func networksOf(w *world.View, p *world.Pod) []string {
	out := p.Networks()
	if a := w.Attachment(p.Key()); a != nil && a.UID == p.UID {
		for _, i := range a.Further {
			out = append(out, i.Network)
		}
	}
	return out
}

// pauseInterface has a pod send nothing outside with its addresses in a network. A network that is not known yet has no
// port for the pod either.
func pauseInterface(w *world.View, network string, ips []netip.Addr, out *plan.Rows) {
	n := w.Network(network)
	if n == nil {
		return
	}
	for _, ip := range ips {
		egress.Pause(w, plan.Names{Network: n.Name, ID: n.ID}, world.FamilyOf(ip), ip, out)
	}
}
