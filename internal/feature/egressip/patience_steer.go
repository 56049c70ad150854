package egressip

import (
	"iter"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/decide"
)

// podsOf are those of an EgressIP on a node.
type podsOf struct {
	node, egressIP string
}

// unconfirmed is a node's that does not confirm that it steers, and does not say what keeps it.
type unconfirmed struct {
	since time.Time
	over  bool // it is no longer waited for
}

// unconfirmed says whether a node is no longer waited for to confirm that it steers pods of an EgressIP.
func (p *Patience) unconfirmed(node, egressIP string) bool {
	s := p.steering[podsOf{node, egressIP}]
	return s != nil && s.over
}

// Await compares what was decided, and of that what was decided anew, with how long nodes have been waited for. It says
// whether that calls for another decision, and when to look again though nothing changes; zero: not. A node that
// confirms, or says what keeps it, begins anew.
func (p *Patience) Await(all map[string]Decision, anew iter.Seq[string], now time.Time) (changed bool,
	again time.Time) {
	for name := range anew {
		for _, node := range all[name].Awaited {
			if s := (podsOf{node, name}); p.steering[s] == nil {
				p.steering[s] = &unconfirmed{since: now}
			}
		}
	}
	for s, t := range p.steering {
		was := t.over
		switch until := t.since.Add(leavingFor); {
		case !slices.Contains(all[s.egressIP].Awaited, s.node):
			t.over = false
			delete(p.steering, s)
		case now.Before(until):
			again = decide.Earlier(again, until)
		default:
			t.over = true
		}
		if was != t.over {
			changed, p.news[s.egressIP] = true, struct{}{}
		}
	}
	return changed, again
}
