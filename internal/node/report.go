package node

import (
	"maps"
	"net/netip"
	"slices"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Report is what this node says of itself to the others.
type Report struct {
	Owner  string // the Node's UID
	Egress bool   // this node can be given egress IPs
	// Holding are the addresses that this node translates to, with since when, as far as the object's status says.
	Holding   map[world.EgressAddress]ref.Since
	UIDs      map[world.EgressAddress]string // of the objects that these are held for, where known
	Steers    []plan.Steered                 // sorted
	Problems  []world.Problem                // sorted
	Conflicts []holder.Conflict              // sorted
	Port      uint16                         // where this agent answers others
}

// Equal compares two reports.
func (r Report) Equal(o Report) bool {
	return r.Owner == o.Owner && r.Egress == o.Egress && r.Port == o.Port && maps.Equal(r.Holding, o.Holding) &&
		maps.Equal(r.UIDs, o.UIDs) && slices.Equal(r.Steers, o.Steers) &&
		slices.Equal(r.Problems, o.Problems) && slices.Equal(r.Conflicts, o.Conflicts)
}

// egressNode is the EgressNode that says what a report does. Other nodes' agents follow it if the node holds anything,
// or may be given it at any time.
func (r Report) egressNode(node, bootID, version string) *egretv1.EgressNode {
	o := kube.EgressNode(r.holdingOf(node, bootID), r.Owner, version, r.Problems)
	if !r.Egress && len(r.Holding) == 0 {
		o.Status.FormatVersion = egretv1.FormatForControllers
	}
	return o
}

// holdingOf is what a report says of a node and a boot of it; its problems are said in words only.
func (r Report) holdingOf(node, bootID string) *world.Holding {
	h := &world.Holding{
		Node: node, BootID: bootID, Holds: map[string][]netip.Addr{}, Conflicts: map[string][]world.Conflict{},
		Steers: map[string][]world.Assignment{}, Port: r.Port, HeldUID: r.UIDs,
	}
	for _, s := range r.Steers {
		to, object := world.Assignment{Node: s.Node, IP: s.IP}, s.Object.Key()
		h.Steers[object] = append(h.Steers[object], to)
		h.SaySteers(object, to, s.Since)
	}
	for _, c := range r.Conflicts {
		// no machine has a group's address
		if mac, err := world.ParseHardwareAddr(c.MAC); err == nil {
			h.Conflicts[c.Object] = append(h.Conflicts[c.Object], world.Conflict{IP: c.IP, MAC: mac})
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(r.Holding), world.EgressAddress.Compare) {
		h.Holds[a.Object] = append(h.Holds[a.Object], a.IP)
		h.SayHeld(a.Object, a.IP, r.Holding[a])
	}
	return h
}

// adoptedReport is what a former process of this boot said last.
func adoptedReport(h *world.Holding) Report {
	r := Report{Holding: map[world.EgressAddress]ref.Since{}, UIDs: h.HeldUID}
	for name, ips := range h.Holds {
		for _, ip := range ips {
			r.Holding[world.EgressAddress{Object: name, IP: ip}] = h.Held(name, ip)
		}
	}
	for name, to := range h.Steers {
		for _, s := range to {
			e := plan.Egress{Object: ref.OfKey(name), Network: ref.DefaultNetwork, IP: s.IP}
			since := h.SteersSince[world.Of{Object: name, Assignment: s}]
			r.Steers = append(r.Steers, plan.Steered{Egress: e, Node: s.Node, Since: since})
		}
	}
	slices.SortFunc(r.Steers, plan.Steered.Compare)
	return r
}

// steeredNodes lists the nodes that this node's own pods are led to, and that say that they hold the address. Of an
// EgressIP of which a target refused something those are the former ones: a row that may not be changed stands as it
// was, and goes on steering.
func steeredNodes(before []plan.Steered, s *plan.State, concerned map[ref.Object]bool) []plan.Steered {
	var out []plan.Steered
	for _, k := range before {
		if concerned[k.Object] {
			out = append(out, k)
		}
	}
	for k, ahead := range s.Steered.Rows() {
		if !bool(ahead) && !concerned[k.Object] {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, plan.Steered.Compare)
	return out
}

// composeReport says what is held, and where this node's own pods are led to, after a round. An egress IP is held once
// the flows that translate to it are in OVS (confirmed); until then only what was held before and is still planned
// counts, as it was given then. An address that a target refused is not held, in whichever network.
func composeReport(node, owner string, before Report, o Outcome, confirmed bool) Report {
	r := Report{Owner: owner, Holding: map[world.EgressAddress]ref.Since{}}
	refused, concerned := map[plan.Owner]bool{}, map[ref.Object]bool{}
	for _, x := range o.Refused {
		refused[x.Owner], concerned[x.Owner.Object] = true, true
		r.Problems = append(r.Problems, refusalProblem(node, x))
	}
	if o.Err != nil {
		text := "targets could not be written: " + o.Err.Error()
		r.Problems = append(r.Problems, ofNode(node, world.ReasonUnavailable, text))
	}
	if o.Left != nil {
		text := "targets could not be cleared: " + o.Left.Error()
		r.Problems = append(r.Problems, ofNode(node, world.ReasonUnavailable, text))
	}
	for p := range o.State.Problems.Rows() {
		r.Problems = append(r.Problems, world.Problem(p))
	}
	done := confirmed && o.Err == nil
	for t, since := range o.State.Translated.Rows() {
		a := world.EgressAddress{Object: t.Object.Key(), IP: t.IP}
		was, held := before.Holding[a]
		if !done {
			since = was
		}
		if done || held {
			r.Holding[a] = since
		}
	}
	for t := range o.State.Translated.Rows() {
		if refused[o.State.Translated.Owner(t)] {
			delete(r.Holding, world.EgressAddress{Object: t.Object.Key(), IP: t.IP})
		}
	}
	if r.Steers = before.Steers; done {
		r.Steers = steeredNodes(before.Steers, o.State, concerned)
	}
	slices.SortFunc(r.Problems, world.Problem.Compare)
	r.Problems = slices.Compact(r.Problems)
	return r
}

// reporting is what this node has said of itself, and what its targets may hold.
type reporting struct {
	last Report
	// mayHold is what the targets may have rows of, by the plans so far.
	mayHold map[world.EgressAddress]ref.Since
	// known is what the world has been told that this node holds; nil at first.
	known map[world.EgressAddress]ref.Since
	// effective is when all of a plan was last in OVS; zero: not since this process began.
	effective plan.Moment
}

// composeNext makes the report after a round, as far as the plan and Kubernetes say it. A previous process' targets of
// this boot go on.
func (r *reporting) composeNext(w *world.World, n *world.Node, o Outcome, confirmed bool, bootID string) {
	if h := w.Holding(w.Self); r.known == nil && h != nil && h.BootID == bootID {
		r.last = adoptedReport(h)
		r.mayHold = maps.Clone(r.last.Holding)
	}
	left := unassignedHeld(w, w.Self, r.mayHold, o)
	r.mayHold = mayHold(r.mayHold, o)
	before := r.last
	r.last = composeReport(w.Self, n.UID, before, o, confirmed)
	if confirmed && o.Err == nil {
		r.effective = o.State.Now()
	}
	maps.Copy(r.last.Holding, left)
	r.last.UIDs = r.last.holdingUIDs(w, before)
	_, r.last.Egress = n.Labels[world.AssignableLabel]
}

// holdingUIDs returns the short UIDs of the objects that addresses are held for. An object whose status says that an
// address was given then is the one that it was given to. Else it is the one of the previous report.
func (r Report) holdingUIDs(w *world.World, before Report) map[world.EgressAddress]string {
	uids := map[world.EgressAddress]string{}
	for a, since := range r.Holding {
		p, uid := w.PlacementOf(a.Object), ""
		if p != nil && p.Since(world.Assignment{Node: w.Self, IP: a.IP}) == since {
			uid = world.ShortUID(w.ClaimantOf(ref.OfKey(a.Object)).UID)
		} else if was, is := before.Holding[a]; is && was == since {
			uid = before.UIDs[a]
		}
		if since != 0 && uid != "" {
			uids[a] = uid
		}
	}
	return uids
}

// plannedAddresses are the addresses that a round's plan translates to, as they were given.
func plannedAddresses(o Outcome) map[world.EgressAddress]ref.Since {
	out := map[world.EgressAddress]ref.Since{}
	for t, since := range o.State.Translated.Rows() {
		out[world.EgressAddress{Object: t.Object.Key(), IP: t.IP}] = since
	}
	return out
}

// mayHold are the addresses that the targets may have rows of after a round, by its plan and those before it: until
// nothing of these is left.
func mayHold(before map[world.EgressAddress]ref.Since, o Outcome) map[world.EgressAddress]ref.Since {
	out := plannedAddresses(o)
	if o.Shrunk {
		return out
	}
	for a, since := range before {
		if _, is := out[a]; !is {
			out[a] = since
		}
	}
	return out
}

// unassignedHeld returns the addresses that this node may hold, reported or not, although no status assigns them to it
// and the plan does not contain them. As long as the targets may hold rows of previous plans, this node may translate
// to them, and no other node must get them. No node steers packets here for them: an address that no status names
// counts for nothing else (World.Holds).
func unassignedHeld(w *world.World, node string, before map[world.EgressAddress]ref.Since, o Outcome,
) map[world.EgressAddress]ref.Since {
	if o.Shrunk {
		return nil
	}
	now := plannedAddresses(o)
	left := maps.Clone(before)
	maps.DeleteFunc(left, func(a world.EgressAddress, _ ref.Since) bool {
		_, is := now[a]
		p := w.PlacementOf(a.Object)
		return is || p != nil && p.Names(node, a.IP)
	})
	return left
}

// refusalProblem is about the object that a refused row belongs to.
func refusalProblem(node string, r *plane.Refused) world.Problem {
	text := r.Plane + " refused " + r.Row + ": " + r.Err.Error()
	if k := r.Owner.Object.Kind; k == ref.EgressIP || k == ref.EgressService {
		return world.Problem{Object: r.Owner.Object, Reason: world.ReasonRefused, Message: text}
	}
	return ofNode(node, world.ReasonRefused, r.Owner.String()+": "+text)
}

// ofNode is a problem of a node itself.
func ofNode(node, reason, text string) world.Problem {
	return world.Problem{Object: ref.Object{Kind: ref.Node, Name: node}, Reason: reason, Message: text}
}

// allOfNode are problems of a node itself, from texts.
func allOfNode(node, reason string, texts []string) []world.Problem {
	var out []world.Problem
	for _, text := range texts {
		out = append(out, ofNode(node, reason, text))
	}
	return out
}
