package egressservice

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/decide/patience"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Types and reasons of conditions, and reasons of Events, as api/v1 documents them.
const (
	ConditionAssigned   = "Assigned"
	ConditionReady      = "Ready"
	ConditionOverlapped = "Overlapped"

	ReasonAssigned             = "Assigned"
	ReasonHeld                 = "Held"
	ReasonWaitingForNode       = decide.ReasonWaitingForNode
	ReasonInvalidSpec          = "InvalidSpec"
	ReasonInvalidSelector      = "InvalidSelector"
	ReasonNetworkNotAllowed    = "NetworkNotAllowed"
	ReasonTooMany              = "TooManyEgressServices"
	ReasonNetworkUnsupported   = "NetworkNotSupported"
	ReasonNoService            = "NoService"
	ReasonNotLoadBalancer      = "NotLoadBalancer"
	ReasonNoIngressIP          = "NoIngressIP"
	ReasonIngressIPConflict    = "IngressIPConflict"
	ReasonNoEndpoints          = "NoEndpoints"
	ReasonHostNetworkEndpoints = "HostNetworkEndpoints"
	ReasonNoMatchingNode       = "NoMatchingNode"
	ReasonLabelTooLong         = "LabelTooLong"
	ReasonLabelAmbiguous       = "LabelAmbiguous"
	ReasonServedByOther        = decide.ReasonServedByOther
	ReasonNoOverlap            = "NoOverlap"

	EventAssigned    = "Assigned"
	EventMoved       = "Moved"
	EventReleased    = "Released"
	EventNodeProblem = "NodeProblem"
	EventOverlap     = "UndefinedRequest"
)

// assignedCondition says which node is the host, or why none is.
func (o *object) assignedCondition() world.Condition {
	c := world.Condition{Type: ConditionAssigned, Status: "True", Reason: ReasonAssigned}
	switch o.host {
	case world.HostAll:
		c.Message = eachIsHost + o.additionalFacts()
	case "":
		c.Status, c.Reason, c.Message = "False", o.facts.reason, o.facts.message
		if c.Reason == "" {
			c.Reason, c.Message = o.noHostReason()
		}
	default:
		c.Message = "pods leave through " + o.host + " with " + joinAddresses(o.facts.sources) + o.additionalFacts()
	}
	return c
}

// additionalFacts is what else there is to know where a host is assigned.
func (o *object) additionalFacts() string {
	var out strings.Builder
	if len(o.facts.spare) > 0 {
		out.WriteString("; the Service's further ingress IPs are no source: " + joinAddresses(o.facts.spare))
	}
	for _, text := range slices.Concat(o.facts.taken, o.facts.doubts) {
		out.WriteString("; " + text)
	}
	if o.facts.others > 0 {
		out.WriteString("; " + o.facts.describeForeign())
	}
	if text := o.selectorProblem(); text != "" {
		out.WriteString("; " + text)
	}
	return out.String()
}

func joinAddresses(ips []netip.Addr) string {
	out := make([]string, len(ips))
	for i, ip := range ips {
		out[i] = ip.String()
	}
	return strings.Join(out, " and ")
}

// noHostReason says why no node can be the host, by the reasons of all that match otherwise.
func (o *object) noHostReason() (reason, message string) {
	if text := o.selectorProblem(); text != "" {
		return ReasonInvalidSelector, text
	}
	var why []string
	for _, node := range o.round.W.Nodes() {
		if cause := o.keepsOut(node); cause != handover.CauseUnselected {
			why = append(why, node+" ("+cause+")")
		}
	}
	selector := cmp.Or(o.s.Nodes.String(), "all nodes")
	if len(why) == 0 {
		return ReasonNoMatchingNode, "no node matches spec.nodeSelector (" + selector + ")"
	}
	return ReasonNoMatchingNode, "no node of those that spec.nodeSelector selects (" + selector +
		") can be the host: " + decide.Some(why)
}

// hindrance is what keeps condition Ready from being True.
type hindrance struct {
	decide.Notice
	reason string // of the condition
	tell   bool   // in an Event, too
}

// readyCondition says whether the host holds all source addresses, and every node with pods leads them there; or with
// SourceNetwork, whether every node with pods leads them to its own network. It also returns what is wrong.
func (o *object) readyCondition(assigned world.Condition) (world.Condition, []decide.Notice) {
	c := world.Condition{Type: ConditionReady, Status: "False", Reason: assigned.Reason, Message: assigned.Message}
	if assigned.Status != "True" {
		f := decide.Finding{Kind: assigned.Reason, Reason: assigned.Reason}
		return c, []decide.Notice{{Finding: f, Event: assigned.Reason, Message: assigned.Message}}
	}
	if reason, message := o.facts.noPods(o.s.Namespace); o.pods == 0 {
		c.Reason, c.Message = reason, message
		return c, []decide.Notice{{Finding: decide.Finding{Kind: reason}, Event: reason, Message: message}}
	}
	unsteered := o.unsteeredNodes()
	waiting := slices.Concat(o.sourcelessFamilies(), o.unannouncedHosts(), o.unheldSources(), o.notSteering(unsteered),
		o.agentsAway())
	switch {
	case len(waiting) == 0 && o.standby.Reason != "": // condition Overlapped tells of it
		c.Reason, c.Message = o.standby.Reason, "no pod leaves as this EgressService says: it "+o.standby.Text
		return c, nil
	case len(waiting) == 0:
		c.Status, c.Reason = "True", ReasonHeld
		c.Message += unsteered.Given()
		return c, nil
	}
	var all, notices []decide.Notice
	for _, h := range waiting {
		all = append(all, h.Notice)
		if h.tell {
			notices = append(notices, h.Notice)
		}
	}
	c.Reason, c.Message = waiting[0].reason, decide.SomeTexts(decide.Texts(all))
	return c, notices
}

// sourcelessFamilies are the families that have no source, because the ingress IPs are somebody else's.
func (o *object) sourcelessFamilies() []hindrance {
	var out []hindrance
	for _, f := range families {
		if o.facts.lacking[f] {
			h := hindrance{reason: ReasonIngressIPConflict, tell: true}
			h.Finding = decide.Finding{Kind: h.reason, Reason: h.reason, Family: f, Detail: h.reason}
			h.Event = h.reason
			h.Message = "pods have no source over IP" + f.String() + ": " + strings.Join(o.facts.taken, "; ")
			out = append(out, h)
		}
	}
	return out
}

// unannouncedHosts is that no node knows yet that each is the host. It is not known before which of them have pods to
// lead.
func (o *object) unannouncedHosts() []hindrance {
	if o.host != world.HostAll || o.s.Host == world.HostAll {
		return nil
	}
	h := hindrance{reason: ReasonWaitingForNode}
	h.Message = "nodes are about to lead their pods to their own networks"
	return []hindrance{h}
}

// agentsAway is that agents are away which the EgressService depends on. An Event of the Node tells of it.
func (o *object) agentsAway() []hindrance {
	nodes := o.round.AgentsAway(ref.Of(ref.EgressService, o.s.Key()), o.items)
	if len(nodes) == 0 {
		return nil
	}
	h := hindrance{reason: handover.CauseAgentAway}
	h.Message = handover.AgentsAwayText(nodes)
	return []hindrance{h}
}

// unheldSources are source addresses that the host does not hold, or does not serve all pods with.
func (o *object) unheldSources() []hindrance {
	var out []hindrance
	for _, i := range o.items {
		switch key := o.s.Key(); {
		case !o.round.Holds(key, i):
			text, why := o.patience.Unheld(o.round.W, key, i, o.failed)
			h := o.hindranceAt(i.Node, text, i.IP)
			h.Why = why
			if o.patience.Of(key, i) != patience.OnTime {
				h.Late, h.tell = true, true
			}
			out = append(out, h)
		case o.round.Refuses(i.Node, key):
			h := o.hindranceAt(i.Node, i.Node+" holds "+i.IP.String()+" and does not serve all pods", i.IP)
			if h.reason != ReasonWaitingForNode {
				h.Message = i.Node + " holds " + i.IP.String() + " and lacks the network"
			}
			out = append(out, h)
		}
	}
	return out
}

// unsteeredNodes are the nodes with pods that have not confirmed that they lead them there.
func (o *object) unsteeredNodes() patience.Unsteered {
	object := ref.Of(ref.EgressService, o.s.Key())
	u := patience.Unsteered{}
	if o.host == world.HostAll {
		u = o.patience.Unconfirmed(o.round, object, true, o.unconfirmedNodes)
	} else {
		u = o.patience.Unsteered(o.round, object, o.items)
	}
	o.awaited = u.Awaited
	return u
}

// notSteering are those of them that are waited for, each once.
func (o *object) notSteering(u patience.Unsteered) []hindrance {
	over := map[string][]string{}
	for _, n := range u.Waiting {
		over[n.Node] = append(over[n.Node], "IP"+n.Family.String())
	}
	var out []hindrance
	for _, node := range slices.Sorted(maps.Keys(over)) {
		text := node + " does not lead its pods there over " + strings.Join(over[node], " and ") + " yet"
		out = append(out, o.hindranceAt(node, text, netip.Addr{}))
	}
	return out
}

// unconfirmedNodes are the nodes with pods that do not lead them to their own network in a family, by name.
func (o *object) unconfirmedNodes(f world.Family) []string {
	object := ref.Of(ref.EgressService, o.s.Key())
	return slices.DeleteFunc(o.round.Served.Nodes(object, f), func(node string) bool {
		own := []world.Assignment{{Node: node, IP: f.Unspecified()}}
		return o.round.W.Steers(node, object.Key(), f, own) && !o.round.Refuses(node, object.Key())
	})
}

// hindranceAt returns the step that a node does not take, with its own words about that.
func (o *object) hindranceAt(node, text string, ip netip.Addr) hindrance {
	problem, reason := o.round.W.ProblemReason(node, o.s.Key())
	h := hindrance{reason: ReasonWaitingForNode, tell: problem != ""}
	h.Finding = decide.Finding{Kind: EventNodeProblem, Reason: reason, Node: node, IP: ip, Detail: problem}
	h.Event, h.Message, h.Why = EventNodeProblem, text, problem
	if reason == world.ReasonUnknownNetwork || reason == world.ReasonNoDefaultRoute {
		h.reason, h.Event = reason, reason
	}
	return h
}

// moveEvents is the Event when the host has become another.
func (o *object) moveEvents() []decide.Event {
	was, now := o.s.Host, o.host
	if was == now {
		return nil
	}
	why := ""
	if o.cause != "" {
		why = " (" + o.cause + ")"
	}
	switch {
	case was == "":
		return []decide.Event{{Reason: EventAssigned, Message: isHost(now)}}
	case now == "":
		return []decide.Event{{Reason: EventReleased, Cause: o.cause, Message: isNoHost(was) + why}}
	case was == world.HostAll || now == world.HostAll:
		return []decide.Event{{Reason: EventMoved, Cause: o.cause, Message: isNoHost(was) + why + ": " + isHost(now)}}
	}
	return []decide.Event{{Reason: EventMoved, Cause: o.cause,
		Message: "the host was " + was + why + " and is " + now}}
}

func isHost(host string) string {
	if host == world.HostAll {
		return eachIsHost
	}
	return "the host is " + host
}

func isNoHost(host string) string {
	if host == world.HostAll {
		return "nodes are no longer the hosts of the pods that they run"
	}
	return host + " is no longer the host"
}

const eachIsHost = "each node is the host of the pods that it runs"

// leavingHosts are the former hosts that go on translating.
func (o *object) leavingHosts() ([]world.Leaving, time.Time) {
	sources := map[netip.Addr]bool{}
	for _, ip := range o.facts.sources {
		sources[ip] = true
	}
	return o.round.Leaving(handover.Object{Object: ref.Of(ref.EgressService, o.s.Key()), Is: &o.s.Placement,
		Shown: &o.shown.Placement, Has: func(ip netip.Addr) bool { return sources[ip] }}, o.items)
}
