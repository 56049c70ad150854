package node

import (
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// linger is how long a former holder goes on translating. One Northbound transaction is not one moment in the datapath: OVS replaces cached
// flows one by one, and a packet that was steered to this node's gateway router by the old policy would meet the node's own address there.
// Other nodes, too, need a moment to hear of the new holder.
const linger = 2 * time.Second

// settle makes addresses linger that the plan no longer translates to, while their EgressIP is there to say so.
func (a *Agent) settle(w *world.World, s *plan.State) []world.Touch {
	before := a.forwards
	if before == nil {
		before = formerly(w, a.self) // the first round: what a former process held
	}
	a.forwards = slices.DeleteFunc(translates(s), func(h Held) bool { return w.Lingers(h.EgressIP, h.IP) })
	var touched []world.Touch
	for _, h := range before {
		e := w.EgressIP(h.EgressIP)
		if slices.Contains(a.forwards, h) || e == nil || !e.Active(world.FamilyOf(h.IP)) || w.Lingers(h.EgressIP, h.IP) {
			continue
		}
		touched = append(touched, w.SetLingering(h.EgressIP, h.IP, true)...)
		time.AfterFunc(linger, func() {
			a.loop.Do(func(w *world.World) []world.Touch { return w.SetLingering(h.EgressIP, h.IP, false) })
		})
	}
	return touched
}

// formerly is what this node said it holds, if it has not been rebooted since.
func formerly(w *world.World, self string) []Held {
	out := []Held{}
	h := w.Holding(self)
	if h == nil {
		return out
	}
	for name, ips := range h.Holds {
		for _, ip := range ips {
			if w.Holds(self, name, ip) {
				out = append(out, Held{name, ip})
			}
		}
	}
	slices.SortFunc(out, func(a, b Held) int { return netip.Addr.Compare(a.IP, b.IP) })
	return out
}
