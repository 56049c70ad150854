package patience

import (
	"cmp"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/world"
)

// Unheld says for people that a node does not hold an address of an object, what it says of it, and which others have
// tried before.
func (p *Patience) Unheld(w *world.View, object string, i world.Assignment, failed Failed) string {
	return p.unheld(w, object, i) + failed.others(object, i)
}

func (p *Patience) unheld(w *world.View, object string, i world.Assignment) string {
	text, late := i.Node+" does not hold "+i.IP.String()+" yet", p.Of(object, i) != OnTime
	if late {
		text += ", for more than " + lateAfter.String()
	}
	if says := w.Problem(i.Node, object); says != "" {
		return text + ": " + says
	}
	if late {
		return text + ": see whether egret-node, ovn-northd and ovn-controller run there"
	}
	return text
}

// others says which other nodes did not hold an address in time, and why.
func (f Failed) others(object string, i world.Assignment) string {
	failed := f[world.EgressAddress{EgressIP: object, IP: i.IP}]
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
