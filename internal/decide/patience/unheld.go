package patience

import (
	"cmp"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// Unheld says for people that a node does not hold an address of an object and which others have tried before; and why,
// by the node's own words, unless the text has it.
func (p *Patience) Unheld(w *world.View, object string, i world.Assignment, failed Failed) (text, why string) {
	text, late := i.Node+" does not hold "+i.IP.String()+" yet", p.Of(object, i) != OnTime
	if late {
		text += ", for more than " + lateAfter.String()
	}
	if why = w.Problem(i.Node, object); why == "" && late {
		why = "see whether egret-node, ovn-northd and ovn-controller run there"
	}
	if others := failed.describeOthers(object, i); others != "" {
		return Because(text, why) + others, ""
	}
	return text, why
}

// Because returns a text with its reason, if the reason is known.
func Because(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}

// describeOthers says which other nodes did not hold an address in time, and why.
func (f Failed) describeOthers(object string, i world.Assignment) string {
	failed := f[world.EgressAddress{Object: object, IP: i.IP}]
	var said []string
	for _, node := range slices.Sorted(maps.Keys(failed)) {
		if node != i.Node {
			said = append(said, node+" ("+cmp.Or(failed[node], "it does not say why")+")")
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "; neither did " + decide.Some(said)
}
