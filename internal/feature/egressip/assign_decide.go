package egressip

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Types of conditions.
const (
	ConditionAssigned   = "Assigned"
	ConditionReady      = "Ready"
	ConditionInForce    = "InForce"
	ConditionFallback   = decide.ConditionFallback
	ConditionOverlapped = "Overlapped"
)

// composeDecision puts together what was found out about an object.
func (a *assigner) composeDecision(o *object) Decision {
	d := Decision{UID: o.e.UID}
	for _, p := range o.places {
		if p.host != nowhere {
			d.Items = append(d.Items, world.Assignment{Node: p.node, IP: p.ip})
		}
	}
	d.Given = handover.Given(&o.e.Placement, o.e.Items, d.Items, a.Now)
	d.Granted = o.grantedAddresses()
	d.Leaving, d.Again = a.leavingHolders(o, d.Items)
	d.WaitsFor = o.waitsFor
	for f := range d.InForce {
		exchangedBy := a.exchangedBy(o, d.Items, world.Family(f))
		d.InForce[f] = a.inForce(o, d, world.Family(f)) || !exchangedBy.IsZero()
		d.Again = decide.Earlier(d.Again, exchangedBy)
	}
	assigned, lacks := o.assignedCondition(d.Items), a.fallbackCondition(o, d)
	unsteered := a.Patience.Unsteered(a.handoverRound(), refTo(o.e.Name), d.Items)
	d.Awaited = unsteered.Awaited
	ready, hindrances := a.readyCondition(o.e, assigned, d.Items, unsteered)
	noted := assigned
	noted.Message += o.networkDoubts()
	inForce := inForceCondition(o.e, assigned, d, unsteered)
	if inForce.Status == "True" {
		inForce.Message += a.othersServe(o.e)
	}
	d.Conditions = append(d.Conditions, noted, ready, inForce, lacks)
	c, conflicts, is := a.addressConflict(o, d.Items)
	if is {
		d.Conditions = append(d.Conditions, c)
	}
	d.Conditions = decide.Dated(o.e.Conditions, o.e.Generation, a.Now, d.Conditions...)
	d.Notices = slices.Concat(o.refusalNotices(len(d.Items) > 0), hindranceNotices(hindrances), conflicts)
	news := decide.Tell(a.previousNotices(o.e, d.Notices), d.Notices)
	d.Events = slices.Concat(o.moveEvents(a, d.Items), news, decide.FallsBack(o.e.Conditions, lacks))
	return d
}

// grantedAddresses are the addresses that the object keeps from claims of others: those that have or had a node. One
// that is refused, whoever had it, is not its own any more.
func (o *object) grantedAddresses() (out []netip.Addr) {
	for _, p := range o.places {
		if p.host != nowhere || !p.conflicts && o.e.Keeps(p.ip) {
			out = append(out, p.ip)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// networkDoubts are those about the networks of its addresses, for condition Assigned.
func (o *object) networkDoubts() string {
	var out strings.Builder
	for _, p := range o.places {
		if p.doubt != "" {
			out.WriteString("; " + p.doubt)
		}
	}
	return out.String()
}

// inForce says whether selected pods send nothing with another source. It begins when a live node first holds an
// address that the decision names it for, and ends only here, when no node can host any.
func (a *assigner) inForce(o *object, d Decision, f world.Family) bool {
	e := o.e
	if !hasFamily(d.Items, f) {
		return o.isKept(f)
	}
	held := func(i world.Assignment) bool { return world.FamilyOf(i.IP) == f && a.heldByLive(e, i) }
	leaves := func(l world.Leaving) bool { return held(world.Assignment{Node: l.Node, IP: l.IP}) }
	return e.InForce[f] || slices.ContainsFunc(d.Items, held) || slices.ContainsFunc(d.Leaving, leaves)
}

func (a *assigner) heldByLive(e *world.EgressIP, i world.Assignment) bool {
	return a.reportsHolding(e.Name, i) && a.w.Alive(i.Node)
}

// assignedCondition says where the addresses are, and why some are nowhere.
func (o *object) assignedCondition(items []world.Assignment) world.Condition {
	var said []string
	reason := ""
	for _, p := range o.places {
		if p.host == nowhere {
			said = append(said, p.why.text)
			reason = firstNonEmpty(reason, p.why.condition)
		}
	}
	if said = append(said, o.e.Problems...); len(o.e.Problems) > 0 {
		reason = firstNonEmpty(reason, ReasonInvalidEgressIP)
	}
	where := make([]string, len(items))
	for i, it := range items {
		where[i] = it.IP.String() + " on " + it.Node
	}
	here := strings.Join(where, ", ")
	switch {
	case len(said) == 0 && len(items) == 0:
		return world.Condition{Type: ConditionAssigned, Status: "False", Reason: ReasonInvalidEgressIP,
			Message: "the spec names no address: give at least one"}
	case len(said) == 0:
		return world.Condition{Type: ConditionAssigned, Status: "True", Reason: ReasonAssigned, Message: here}
	case len(items) > 0:
		return world.Condition{Type: ConditionAssigned, Status: "False", Reason: ReasonPartiallyAssigned,
			Message: here + "; " + strings.Join(said, "; ")}
	}
	return world.Condition{Type: ConditionAssigned, Status: "False", Reason: reason, Message: strings.Join(said, "; ")}
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// readyCondition says whether every address is held by the node that it is assigned to, and every node leads the
// selected pods that run there to those; and what the condition names as keeping it from that.
func (a *assigner) readyCondition(e *world.EgressIP, assigned world.Condition, items []world.Assignment,
	unsteered patience.Unsteered) (c world.Condition, named []hindrance) {
	c = world.Condition{Type: ConditionReady, Status: "False", Reason: assigned.Reason, Message: assigned.Message}
	waiting := append(a.unheldHindrances(e.Name, items), a.rowHindrances(e.Name, items)...)
	away := a.handoverRound().AgentsAway(refTo(e.Name), items)
	switch {
	case len(selectorProblems(e)) > 0:
		c.Reason, c.Message = ReasonInvalidSelector, strings.Join(selectorProblems(e), "; ")
	case assigned.Status != "True":
		named = waiting
		c.Message = strings.Join(append([]string{assigned.Message}, hindranceTexts(named)...), "; ")
	case len(waiting) > 0:
		named = waiting
		c.Reason, c.Message = ReasonWaitingForNode, strings.Join(hindranceTexts(named), ", ")
	case len(unsteered.Waiting) > 0:
		all := a.notSteering(e.Name, unsteered)
		named = all[:min(len(all), decide.MostNamed)]
		c.Reason, c.Message = ReasonWaitingForNode, decide.Some(hindranceTexts(all))
	case len(away) > 0:
		c.Reason, c.Message = handover.CauseAgentAway, handover.AgentsAwayText(away)
	default:
		c.Status, c.Reason, c.Message = "True", ReasonHeld,
			"selected pods leave with "+assigned.Message+unsteered.Given()+a.othersServe(e)
	}
	return c, named
}

// othersServe is added where it stands by for any of its pods.
func (a *assigner) othersServe(e *world.EgressIP) string {
	for _, f := range a.w.Config.Families() {
		for other := range a.Served.Others(refTo(e.Name), f) {
			if other != (ref.Object{}) {
				return ", but for those that others serve: condition Overlapped says which"
			}
		}
	}
	return ""
}

// unheldHindrances says which nodes do not hold what they are assigned.
func (a *assigner) unheldHindrances(name string, items []world.Assignment) []hindrance {
	var out []hindrance
	for _, i := range items {
		if a.reportsHolding(name, i) {
			continue
		}
		f := decide.Finding{Kind: EventNodeProblem, Reason: ReasonNotHeld, IP: i.IP, Node: i.Node,
			Detail: a.w.Problem(i.Node, name), Late: a.Patience.Of(name, i) != patience.OnTime}
		text := patience.Because(a.Patience.Unheld(a.w, name, i, a.failed))
		out = append(out, hindrance{f, text, f.Late || a.hasProblemOf(i.Node, name)})
	}
	return out
}

// reportsHolding says whether a node says that it holds an address, named for it or not.
func (a *assigner) reportsHolding(name string, i world.Assignment) bool {
	return a.handoverRound().Holds(name, i)
}

// inForceCondition is InForce for people: True where every family that the spec has addresses of is in force, and every
// node with selected pods has confirmed it once, or was waited for; which families are, status.inForce says.
func inForceCondition(e *world.EgressIP, assigned world.Condition, d Decision,
	unsteered patience.Unsteered) world.Condition {
	waits := func(f world.Family) bool { return e.Asks(f) && !d.InForce[f] }
	in := decide.Families(func(f world.Family) bool { return e.Asks(f) && d.InForce[f] })
	awaited := decide.Families(func(f world.Family) bool { return waits(f) && hasFamily(d.Items, f) })
	lacking := decide.Families(func(f world.Family) bool { return waits(f) && !hasFamily(d.Items, f) })
	c := world.Condition{Type: ConditionInForce, Status: "False", Reason: assigned.Reason, Message: inForceText(e, in,
		awaited, lacking)}
	switch {
	case awaited != "":
		c.Reason = ReasonNotHeld
	case in != "" && len(unsteered.Waiting) > 0 && conditionOf(e, ConditionInForce).Status != "True":
		c.Reason, c.Message = ReasonWaitingForNode, unsteered.Text()
	case in != "" && lacking == "":
		c.Status, c.Reason, c.Message = "True", ReasonHeld, c.Message+unsteered.Given()
	}
	return c
}

// inForceText says family by family what selected pods leave with.
func inForceText(e *world.EgressIP, in, awaited, lacking string) string {
	var said []string
	if in != "" {
		to := ""
		if e.Traffic != nil {
			to = " " + destinationsText(e)
		}
		said = append(said, "selected pods leave"+to+" over "+in+" with an egress IP or not at all")
	}
	if awaited != "" {
		said = append(said, "no node holds an "+awaited+" address of it yet: "+otherwiseText(e, awaited)+
			" until one does")
	}
	if lacking != "" {
		said = append(said, "no "+lacking+" address of it has a node: "+otherwiseText(e, lacking))
	}
	if len(said) == 0 {
		return noAddress
	}
	return strings.Join(said, "; ")
}

func conditionOf(e *world.EgressIP, kind string) world.Condition {
	return decide.Condition(e.Conditions, kind)
}
