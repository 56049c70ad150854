package node

import (
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// linger is how long an address is translated to that this node has given way for: other nodes need a moment to hear of the other holder, and OVS replaces
// cached flows one by one. While the API server can be reached, the EgressIP's status.leaving says how long.
const linger = 2 * time.Second

// settle makes addresses linger that this node translated to until it gave way for them.
func (a *Agent) settle(w *world.World, s *plan.State) []world.Touch {
	var begin []plan.Egress
	a.translated, begin = egressip.Linger(w, a.translated, s)
	var touched []world.Touch
	for _, t := range begin {
		touched = append(touched, w.SetLingering(t.Object.Name, t.IP, true)...)
		time.AfterFunc(linger, func() {
			a.loop.Do(func(w *world.World) []world.Touch { return w.SetLingering(t.Object.Name, t.IP, false) })
		})
	}
	return touched
}
