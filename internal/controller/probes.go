package controller

import (
	"net/netip"
	"reflect"
	"slices"

	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

// Prober is told which nodes to probe.
type Prober interface {
	Follow([]probe.Target, probe.Witnesses)
}

// reach is what is known of nodes that do not count as reachable, and who is probed to know it.
type reach struct {
	prober Prober                          // nil: nodes are not probed
	self   string                          // the node that this runs on
	named  []netip.Addr                    // further witnesses, that people named
	probed map[string]world.Unreachability // by the probes
	dead   map[string]bool                 // nodes whose agents have not renewed their Leases

	leader   string         // the node of the controller that leads
	followed []probe.Target // the last targets of the prober
	beside   probe.Witnesses
	outdated bool // whether these may be others now
}

func newReach() *reach {
	return &reach{probed: map[string]world.Unreachability{}, dead: map[string]bool{}}
}

// noteChanged learns what changes in the world.
func (r *reach) noteChanged(e world.Entry) {
	r.outdated = r.outdated || e.Kind == world.KindEgressService || e.Kind == world.KindNode
}

func (r *reach) setLeader(node string) { r.leader, r.outdated = node, true }

func (r *reach) noteProbed(node string, why world.Unreachability) {
	if r.probed[node] = why; why == "" {
		delete(r.probed, node)
	}
}

func (r *reach) noteAgent(node string, dead bool) {
	if delete(r.dead, node); dead {
		r.dead[node] = true
	}
}

// whyUnreachable returns why a node does not count as reachable, or "". That nothing at all answers says more than that
// its agent is away.
func (r *reach) whyUnreachable(node string) world.Unreachability {
	if why := r.probed[node]; why != "" {
		return why
	}
	if r.dead[node] {
		return world.AgentAway
	}
	return ""
}

// followTargets tells the prober which nodes to probe, when they have become others. It returns those that were not
// probed before, or at other addresses.
func (r *reach) followTargets(w *world.World) (unknown []string) {
	if r.prober == nil || !r.outdated {
		return nil
	}
	r.outdated = false
	all, beside := probeTargets(w, r.self, r.leader), r.besideNodes(w)
	if slices.EqualFunc(all, r.followed, sameTarget) && reflect.DeepEqual(beside, r.beside) {
		return nil
	}
	for _, t := range all {
		if !slices.ContainsFunc(r.followed, func(old probe.Target) bool { return sameTarget(old, t) }) {
			unknown = append(unknown, t.Node)
		}
	}
	r.followed, r.beside = all, beside
	r.prober.Follow(all, beside)
	return unknown
}

// besideNodes are the witnesses beside the nodes, as this controller's node reaches them: by the primary network, as it
// does other nodes. A gateway that has an address of its link alone is not asked.
func (r *reach) besideNodes(w *world.World) probe.Witnesses {
	n := w.Node(r.self)
	if n == nil {
		return probe.Witnesses{}
	}
	out := probe.Witnesses{From: primaryAddrs(n), Hosts: slices.Clone(r.named)}
	for _, g := range n.Gateways {
		if !g.IsLinkLocalUnicast() {
			out.Hosts = append(out.Hosts, g)
		}
	}
	return out
}
