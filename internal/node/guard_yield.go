package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/plane/listen"
	"github.com/egret-net/egret/internal/world"
)

// yield gives way. Where Kubernetes names another node that is only until the successor's report can be here: if none comes, the address is
// answered for again. Where Kubernetes is out of reach it is until it says again whose the address is.
func (g *guard) yield(w *world.World, c listen.Claim) []world.Touch {
	claim := world.EgressAddress{EgressIP: g.held[c.IP], IP: c.IP}
	if _, already := w.Yielded(claim.EgressIP, claim.IP); already {
		return nil
	}
	to := nodeAt(w, c.MAC)
	maps.DeleteFunc(g.contested, func(who claimant, _ *contest) bool { return who.ip == c.IP })
	if g.adopted || named(w, g.self, claim.EgressIP, c.IP) {
		g.log.Warn("gives way for an egress IP: another machine announces it, and the API server cannot be reached",
			"egressIP", claim.EgressIP, "ip", c.IP, "mac", c.MAC, "node", to)
		g.yielded[claim] = true
	} else {
		g.reconsider(claim)
	}
	return w.SetYielded(claim, to)
}

// reconsider ends what was given way for, when the time of a successor's report is over; not while one that this node does not hear says that it holds the
// address: it is heard by the link.
func (g *guard) reconsider(claim world.EgressAddress) {
	time.AfterFunc(linger, func() {
		g.do(func(w *world.World) []world.Touch {
			switch {
			case g.yielded[claim]:
				return nil
			case heldUnheard(w, g.self, claim):
				g.reconsider(claim)
				return nil
			}
			return w.DelYielded(claim)
		})
	})
}

// heldUnheard says whether another node that Kubernetes names holds an address and is not alive as far as this one can tell.
func heldUnheard(w *world.World, self string, c world.EgressAddress) bool {
	e := w.EgressIP(c.EgressIP)
	return e != nil && slices.ContainsFunc(e.Items, func(a world.Assignment) bool {
		return a.IP == c.IP && a.Node != self && w.Holds(a.Node, c.EgressIP, c.IP) && !w.Alive(a.Node)
	})
}

// takeBack ends what was given way for, one EgressIP after the other, once the world says what the API server says of it.
func (g *guard) takeBack(ctx context.Context, claims []world.EgressAddress) {
	var err error
	for _, c := range claims {
		var e *world.EgressIP
		timed, cancel := context.WithTimeout(ctx, askWait)
		e, err = g.ask(timed, c.EgressIP)
		cancel()
		if err != nil {
			break
		}
		g.do(func(w *world.World) []world.Touch { return g.resume(w, c, e) })
	}
	g.do(func(w *world.World) []world.Touch { return g.answered(w, err) })
}

// resume takes e, nil if there is none, for what the API server says.
func (g *guard) resume(w *world.World, c world.EgressAddress, e *world.EgressIP) []world.Touch {
	have := w.EgressIP(c.EgressIP)
	if e != nil && (have == nil || !slices.Equal(have.Items, e.Items)) {
		return nil // the next look finds that it has come
	}
	delete(g.yielded, c)
	return w.DelYielded(c)
}
