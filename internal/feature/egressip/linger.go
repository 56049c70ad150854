package egressip

import (
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Linger compares what the former plan translated to, of what did not linger, with a new plan. It returns the same of the new plan, and the addresses
// that begin to linger: those that this node translated to until it gave way for them. There is no API server then whose word status.leaving would be.
func Linger(w *world.World, before []Translation, s *plan.State) (now, begin []Translation) {
	for t := range Translations(s) {
		if !w.Lingers(t.EgressIP, t.IP) {
			now = append(now, t)
		}
	}
	for _, t := range before {
		if _, yielded := w.Yielded(t.EgressIP, t.IP); yielded && !slices.Contains(now, t) && !w.Lingers(t.EgressIP, t.IP) {
			begin = append(begin, t)
		}
	}
	return now, begin
}
