package handover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// whenUnassigned is api/v1's AnnotationWhenUnassigned.
const whenUnassigned = "egret.k8s.ovn.org/when-unassigned"

// Fallback is an object, and the families in which it asks for addresses of which none has a node.
type Fallback struct {
	Object ref.Object
	Lacks  func(world.Family) bool
	Kept   func(world.Family) bool // and in which it stays in force all the same
	Drop   bool                    // its pods' packets in a family that it lacks must be dropped
	Words  FallbackWords
}

// FallbackWords are what people call it; each takes families, as in "IPv4 and IPv6".
type FallbackWords struct {
	Lacks string // "it has no host for %s"
	Sent  string // "what pods send outside over %s"
	Leave string // "pods leave over %s with their node's address"
	Until string // without families, when that which is kept ends: "spec.nodeSelector can be read"
}

// Fallback is condition Fallback where it is True, by what nodes have confirmed and by who has the claim to the pods'
// packets; or a condition without a reason.
func (r *Round) Fallback(f Fallback) world.Condition {
	c := world.Condition{Type: decide.ConditionFallback, Status: "True"}
	var said []string
	note := func(families func(world.Family) bool, say func(Fallback, fate) (reason, text string)) {
		if decide.Families(families) == "" {
			return
		}
		reason, text := say(f, r.fateOf(f.Object, families))
		c.Reason = worseReason(c.Reason, reason)
		said = append(said, text)
	}
	note(f.Lacks, Fallback.describeLacking)
	note(f.Kept, Fallback.describeInForce)
	c.Message = strings.Join(said, "; ")
	return c
}

// worseReason is the reason that people are to know of first.
func worseReason(a, b string) string {
	order := []string{decide.ReasonNodeIP, decide.ReasonWaitingForNode, decide.ReasonDrop, decide.ReasonServedByOther,
		decide.ReasonDroppedByOther}
	for _, reason := range order {
		if a == reason || b == reason {
			return reason
		}
	}
	return cmp.Or(a, b)
}

// describeLacking says what becomes of packets that no node is to give an address.
func (f Fallback) describeLacking(is fate) (reason, text string) {
	text = fmt.Sprintf(f.Words.Lacks, is.families) + ": "
	switch {
	case is.allOthers():
		return is.byOthers(), text + "others decide about all of its pods: " + decide.Some(is.others)
	case f.Drop:
		reason, dropped := is.describeDropped()
		return reason, text + fmt.Sprintf(f.Words.Sent, is.families) + " " + dropped + ", as annotation " +
			whenUnassigned + "=drop asks" + is.unaffectedPods() + is.unconfirmedNodes()
	}
	text += fmt.Sprintf(f.Words.Leave, is.families)
	if is.served {
		text += ", unless another object takes them over"
	}
	return decide.ReasonNodeIP, text + is.unaffectedPods() + "; annotate it " + whenUnassigned +
		"=drop to have that dropped"
}

// describeInForce says what becomes of those of an object that stays in force.
func (f Fallback) describeInForce(is fate) (reason, text string) {
	reason, dropped := is.describeDropped()
	return reason, fmt.Sprintf(f.Words.Lacks, is.families) + ": " + fmt.Sprintf(f.Words.Sent, is.families) + " " +
		dropped + " until " + f.Words.Until + is.unaffectedPods() + is.unconfirmedNodes()
}

// fate is what becomes of packets that an object's running pods send in families in which none of its addresses has a
// node.
type fate struct {
	families string
	served   bool // it has the claim to any, for the decision is not in the world yet where it lets go of them
	own      bool // it has, or nobody
	serving  bool // any of the others leads them to a node
	others   []string
	undropped,
	unreached []string // nodes with pods of its own that have not confirmed that they drop
}

// fateOf is that of packets of an object.
func (r *Round) fateOf(o ref.Object, is func(world.Family) bool) fate {
	out, others := fate{families: decide.Families(is)}, map[ref.Object]int{}
	families := slices.DeleteFunc(r.W.Config.Families(), func(f world.Family) bool { return !is(f) })
	for _, f := range families {
		for _, node := range r.Served.Nodes(o, f) {
			out.served = true
			r.noteDropping(&out, o, f, node)
		}
		for other, pods := range r.Served.Others(o, f) {
			others[other] = max(others[other], pods)
		}
	}
	out.own = out.served || others[ref.Object{}] > 0
	delete(others, ref.Object{})
	for _, other := range slices.SortedFunc(maps.Keys(others), ref.Object.Compare) {
		suffix := droppedSuffix
		out.own = out.own || toSome(r.W, other) // no other object has its pods' packets to other destinations
		if !OnlyDrops(r.W, other, families...) {
			out.serving, suffix = true, ""
		}
		out.others = append(out.others, fmt.Sprintf("%s (%d%s)", other, others[other], suffix))
	}
	out.undropped, out.unreached = distinctTexts(out.undropped), distinctTexts(out.unreached)
	return out
}

// toSome says whether an object decides about what pods send to some destinations only.
func toSome(w *world.View, o ref.Object) bool {
	if o.Kind != ref.EgressIP {
		return false
	}
	e := w.EgressIP(o.Name)
	return e != nil && e.Traffic != nil
}

func distinctTexts(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// noteDropping notes whether a node drops what its pods of an object send, as far as it has told.
func (r *Round) noteDropping(is *fate, o ref.Object, f world.Family, node string) {
	switch dropped := []world.Assignment{{IP: f.Unspecified()}}; {
	case r.W.Steers(node, o.Key(), f, dropped) && !r.Refuses(node, o.Key()):
	case !r.Answers(node):
		is.unreached = append(is.unreached, node)
	default:
		text := node
		if says := r.W.Problem(node, o.Key()); says != "" {
			text += " (" + says + ")"
		}
		is.undropped = append(is.undropped, text)
	}
}

// OnlyDrops says whether an object that has claims to packets has no node to lead them to, in any of these families.
func OnlyDrops(w *world.View, o ref.Object, families ...world.Family) bool {
	if o.Kind == ref.EgressService {
		if s := w.EgressService(o.Key()); s == nil || s.Host == world.HostAll {
			return false
		}
	}
	p := w.PlacementOf(o.Key())
	return p != nil && !slices.ContainsFunc(families, p.HasItems)
}

func (is *fate) allOthers() bool { return !is.own && len(is.others) > 0 }

func (is *fate) byOthers() string {
	if is.serving {
		return decide.ReasonServedByOther
	}
	return decide.ReasonDroppedByOther
}

// describeDropped says that packets are dropped only where every node that can be asked has confirmed that.
func (is *fate) describeDropped() (reason, verb string) {
	if len(is.undropped) > 0 {
		return decide.ReasonWaitingForNode, "is to be dropped"
	}
	return decide.ReasonDrop, "is dropped"
}

// unaffectedPods says which pods are not concerned.
func (is *fate) unaffectedPods() string {
	if len(is.others) == 0 {
		return ""
	}
	return "; others decide about pods of it: " + decide.Some(is.others)
}

// unconfirmedNodes names the nodes that may go on as they did.
func (is *fate) unconfirmedNodes() (text string) {
	if len(is.undropped) > 0 {
		text = "; not confirmed by " + decide.Some(is.undropped) + ", where pods may send as before: if that " +
			"lasts, see whether egret-node, ovn-northd and ovn-controller run there"
	}
	return text + decide.Unasked(is.unreached)
}
