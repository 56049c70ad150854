package egressip

import (
	"slices"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// podsOf are those of an EgressIP on a node.
type podsOf struct {
	node, egressIP string
}

// Await compares what was decided with how long nodes have been waited for. It returns what it touched, and when to look again though nothing changes; zero:
// not. A node that confirms, or says what keeps it, begins anew.
func (p *Patience) Await(w *world.World, all map[string]Decision, now time.Time) (touched []world.Touch, again time.Time) {
	for name, d := range all {
		for _, node := range d.Awaited {
			if s := (podsOf{node, name}); p.steering[s].IsZero() {
				p.steering[s] = now
			}
		}
	}
	for s, since := range p.steering {
		switch until := since.Add(leavingFor); {
		case !slices.Contains(all[s.egressIP].Awaited, s.node):
			touched = append(touched, p.confirmed(w, s)...)
		case now.Before(until):
			again = earlier(again, until)
		default:
			touched = append(touched, w.SetUnconfirmed(s.node, s.egressIP, true)...)
		}
	}
	return touched, again
}

func (p *Patience) confirmed(w *world.World, s podsOf) []world.Touch {
	delete(p.steering, s)
	return w.SetUnconfirmed(s.node, s.egressIP, false)
}
