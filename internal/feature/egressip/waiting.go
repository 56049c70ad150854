package egressip

import "github.com/egret-net/egret/internal/world"

// Waiting says whether a pod of this node has an egress IP that no node is ready for: what it sends outside now would leave with another
// source, or nowhere. A pod that starts waits for this to end; "" is the answer when it need not, else the EgressIP's name.
func Waiting(w *world.View, key string) string {
	p := w.Pod(key)
	if p == nil {
		return ""
	}
	for _, f := range w.Config.Families() {
		e := w.Serving(p, f)
		if e == nil || len(f.OfAddrs(addresses(w, p))) == 0 {
			continue
		}
		if steer(w, e, f).action != "reroute" {
			return e.Name
		}
	}
	return ""
}
