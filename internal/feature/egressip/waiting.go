package egressip

import (
	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Waiting says whether an EgressIP has a claim to packets of a pod of this node that no node is ready for: what the
// pod sends there now would leave with another source, or nowhere. A pod that starts waits for this to end; zero is the
// answer when it need not.
func Waiting(w *world.View, key string) ref.Object {
	p := w.Pod(key)
	if p == nil {
		return ref.Object{}
	}
	for _, f := range w.Config.Families() {
		if len(f.OfAddrs(egress.Addresses(w, p, ref.DefaultNetwork))) == 0 {
			continue
		}
		for _, c := range w.Claims(p, ref.DefaultNetwork, f) {
			if c.By.Kind != ref.EgressIP {
				continue
			}
			if s := steer(w, w.EgressIP(c.By.Name), f); s.action != "reroute" || s.ahead() {
				return c.By
			}
		}
	}
	return ref.Object{}
}
