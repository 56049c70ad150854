package egressip

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/world"
)

// ConditionTrafficSelected says which networks an EgressIP's selector of traffic selects.
const ConditionTrafficSelected = "TrafficSelected"

// Its reasons, and those of Events.
const (
	ReasonNetworksSelected = "NetworksSelected"
	ReasonNoNetworks       = "NoNetworks"
	ReasonTooManyNetworks  = "TooManyNetworks"
	EventNetworksRemoved   = "NetworksRemoved"
	EventTrafficProblem    = "TrafficProblem"
)

// Selector decides one condition of EgressIPs: which networks their selectors of traffic select. It tells, once a term,
// of networks that were taken from an EgressIP, and of what is the matter with any.
type Selector struct {
	concerned
	last  map[string]selection
	nodes *nodesKnown // they tell of networks that are not outside the cluster
}

// selection is what an EgressIP's selector of traffic selects, and what becomes of it.
type selection struct {
	uid        string
	unread     string              // why the selector cannot be read
	by         [2]destinations.Set // of each family; none without a selector
	everything bool                // there is no selector
	objects    int
	problems   []decide.Notice // those with the same message are beside each other
	leftOut    []string        // EgressIPTraffics that do not count

	asks, binds [2]bool // by family: it has an address of it, and pods leave with that or not at all
}

// NewSelector has decided nothing yet.
func NewSelector() *Selector {
	d := &Selector{newConcerned(), map[string]selection{}, nil}
	d.nodes = newNodesKnown(func() { d.all = true })
	return d
}

// NoteChanged takes in what changes.
func (d *Selector) NoteChanged(e world.Entry) {
	if d.concerned.NoteChanged(e); e.Kind == world.KindDestinations {
		d.Objects[e.Key] = struct{}{}
	}
}

// Decide says which EgressIPs have networks, of those for which something has changed.
func (d *Selector) Decide(v decide.View) (desired []decide.Desired, again time.Time) {
	for _, e := range d.takeConcerned(v, func(name string) { delete(d.last, name) }) {
		if one, is := d.decideCondition(v, e); is {
			desired = append(desired, one)
		}
	}
	return desired, time.Time{}
}

// decideCondition says what an EgressIP is with the condition, or without it where it has no selector of traffic;
// nothing, where it does not say anything else already.
func (d *Selector) decideCondition(v decide.View, e *world.EgressIP) (out decide.Desired, is bool) {
	now := selectionOf(v.World, d.nodes, e)
	events := now.worseningEvents(e, d.last[e.Name])
	if !e.TrafficUnknown {
		d.last[e.Name] = now
	}
	if e.Traffic == nil && now.unread == "" {
		if conditionOf(e, ConditionTrafficSelected).Type == "" {
			return out, false
		}
		d.Objects[e.Name] = struct{}{}
		return ofEgressIP(e, []world.Condition{{Type: ConditionTrafficSelected}}, events), true // it goes
	}
	return d.desiredCondition(v, e, now.asCondition(), events), true
}

func selectionOf(w *world.World, nodes *nodesKnown, e *world.EgressIP) selection {
	s := selection{uid: e.UID, unread: e.TrafficProblem, everything: e.Traffic == nil}
	if s.everything {
		return s
	}
	for i := range s.by {
		f := world.Family(i)
		s.by[f] = w.Destinations(e.Name, f)
		s.asks[f], s.binds[f] = e.Asks(f), e.InForce[f] || e.DropWhenUnassigned
	}
	for _, t := range w.SelectedTraffic(e) {
		s.objects++
		for _, problem := range t.Problems {
			f := decide.Finding{Part: t.Name, Detail: problem}
			s.problems = append(s.problems, trafficProblem(f, "EgressIPTraffic "+t.Name+": "+problem))
		}
	}
	for _, t := range w.LeftOutTraffic(e) {
		s.leftOut = append(s.leftOut, t.Name)
		s.problems = append(s.problems, trafficProblem(decide.Finding{Reason: ReasonTooManyNetworks, Part: t.Name},
			fmt.Sprintf("EgressIPTraffic %s: with its %s it would be more than %d in all: it does not count; select "+
				"fewer, or make larger networks", t.Name, countNoun(len(t.Networks), "network"), world.MaxNetworks)))
	}
	s.problems = append(s.problems, insideProblems(w, nodes, s.by)...)
	return s
}

// insideProblems are about networks that are not outside the cluster: a finding a range and a node.
func insideProblems(w *world.World, known *nodesKnown, by [2]destinations.Set) []decide.Notice {
	var out []decide.Notice
	for i, s := range by {
		f := world.Family(i)
		ranges, nodes := w.Config.Overlapped(s), known.nodesWithin(w, s)
		for _, r := range ranges {
			out = append(out, trafficProblem(decide.Finding{Family: f, Detail: r}, "the networks have addresses of "+
				"the "+strings.Join(ranges, " and of the ")+": what pods send to pods, Services and routers there "+
				"does not leave the cluster, and is left as it is"))
		}
		for _, n := range nodes {
			out = append(out, trafficProblem(decide.Finding{Family: f, Node: n}, "the networks have addresses of "+
				"nodes ("+decide.Some(nodes)+"), which pods reach with the address of their own node"))
		}
	}
	return out
}

func trafficProblem(f decide.Finding, message string) decide.Notice {
	f.Kind = EventTrafficProblem
	return decide.Notice{Finding: f, Event: EventTrafficProblem, Message: message}
}

// asCondition counts networks after those that overlap were put together, and says what becomes of them by family.
func (s selection) asCondition() world.Condition {
	c := world.Condition{Type: ConditionTrafficSelected, Status: "True", Reason: ReasonNetworksSelected,
		Message: s.countSelected() + s.describeEffect()}
	has := func(f world.Family) bool { return len(s.by[f]) > 0 }
	switch {
	case s.unread != "":
		c.Status, c.Reason, c.Message = "False", ReasonInvalidSelector, s.unread
	case decide.Families(has) == "":
		c.Status, c.Reason = "False", ReasonNoNetworks
		c.Message = fmt.Sprintf("spec.trafficSelector selects %s, without networks: it serves no pod",
			countNoun(s.objects, "EgressIPTraffic"))
	case decide.Families(func(f world.Family) bool { return has(f) && s.asks[f] }) == "":
		c.Status, c.Reason = "False", ReasonNoNetworks
	case len(s.leftOut) > 0:
		c.Status, c.Reason = "False", ReasonTooManyNetworks
	}
	if len(s.problems) > 0 {
		c.Message += "; " + decide.Some(problemTexts(s.problems))
	}
	return c
}

// countSelected counts the networks of each family that has any.
func (s selection) countSelected() string {
	var said []string
	for f, set := range s.by {
		if len(set) > 0 {
			said = append(said, countNoun(len(set), "IP"+world.Family(f).String()+" network"))
		}
	}
	return fmt.Sprintf("spec.trafficSelector selects %s, of %s", strings.Join(said, " and "),
		countNoun(s.objects, "EgressIPTraffic"))
}

// describeEffect is what selected pods leave with to the networks of each family.
func (s selection) describeEffect() string {
	which := func(is func(f world.Family) bool) string {
		return decide.Families(func(f world.Family) bool { return len(s.by[f]) > 0 && is(f) })
	}
	text := ""
	if binds := which(func(f world.Family) bool { return s.asks[f] && s.binds[f] }); binds != "" {
		text += ": over " + binds + " selected pods leave there with an egress IP or not at all"
	}
	if waits := which(func(f world.Family) bool { return s.asks[f] && !s.binds[f] }); waits != "" {
		text += "; over " + waits + " it is not in force: condition InForce says what selected pods leave with"
	}
	if lacks := which(func(f world.Family) bool { return !s.asks[f] }); lacks != "" {
		text += "; it has no " + lacks + " address: it serves no pod over " + lacks
	}
	return text
}

func countNoun(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprint(n, " ", what, "s")
}

// problemTexts are what notices say, each once.
func problemTexts(notices []decide.Notice) (out []string) {
	for _, n := range notices {
		out = append(out, n.Message)
	}
	return slices.Compact(out)
}

// worseningEvents are Events of what is worse than it was at the last decision about the same object. The first
// decision of a term knows of none before: where the object has the condition, a former leader has told.
func (s selection) worseningEvents(e *world.EgressIP, last selection) []decide.Event {
	var out []decide.Event
	found := s.problems
	switch {
	case last.uid == s.uid:
		found = decide.News(last.problems, found)
	case conditionOf(e, ConditionTrafficSelected).Type != "":
		found = nil
	}
	for _, message := range problemTexts(found) {
		out = append(out, decide.Event{Warning: true, Happened: true, Reason: EventTrafficProblem, Message: message})
	}
	if gone := s.describeLost(last); last.uid == s.uid && gone != "" {
		out = append(out, decide.Event{Warning: true, Happened: true, Reason: EventNetworksRemoved,
			Message: fmt.Sprintf("spec.trafficSelector no longer selects %s: selected pods leave there with their "+
				"node's address, unless another EgressIP serves them", gone)})
	}
	return out
}

// describeLost is what was selected, of families that it has addresses of, and is no more; "": nothing. A large network
// without many small ones can leave a million networks.
func (s selection) describeLost(last selection) string {
	if last.everything && !s.everything {
		return "what the selected EgressIPTraffics do not name"
	}
	var first []string
	all := 0
	for f, now := range s.by {
		if !s.asks[f] {
			continue
		}
		gone := last.by[f].Without(now)
		all += len(gone)
		for _, p := range gone[:min(len(gone), decide.MostNamed-len(first))] {
			first = append(first, p.String())
		}
	}
	return decide.SomeOf(first, all)
}
