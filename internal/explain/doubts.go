package explain

import (
	"fmt"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// doubts are what decides about a pod's packets to the outside, and is known to nodes alone.
func doubts(w *world.World, pod *world.Pod, f world.Family) []string {
	var out []string
	for _, c := range w.Claims(pod, w.PrimaryNetwork(pod.Namespace), f) {
		if c.By.Kind == ref.EgressService {
			out = append(out, doubtsOf(w.EgressService(c.By.Key()), c.By)...)
		} else if e := w.EgressIP(c.By.Name); e.TrafficUnknown && (e.InForce[f] || e.DropWhenUnassigned) {
			out = append(out, fmt.Sprintf("spec.trafficSelector of %s cannot be read: agents go by the former one, "+
				"and those that have started since drop what it may be about", c.By))
		}
	}
	return out
}

func doubtsOf(s *world.EgressService, o ref.Object) []string {
	switch {
	case s.Table != (world.RoutingTable{}):
		return []string{fmt.Sprintf("%s routes by table %s of hosts", o, plain(s.Table.String()))}
	case s.Host == world.HostAll:
		return []string{fmt.Sprintf("%s routes by hosts' own routes, and packets have the address of the link", o)}
	}
	return nil
}
