package egressservice

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// backing counts the pods with an address behind EgressServices' Services, whoever decides about their packets.
type backing struct {
	// News are the EgressServices that any pod is behind now and none was before, or the other way round, by key.
	News map[string]struct{}
	pods map[string]int
}

func newBacking(pods *handover.Pods) *backing {
	b := &backing{News: map[string]struct{}{}, pods: map[string]int{}}
	handover.NewPodList(pods, servicesOf, b.countPods)
	return b
}

// servicesOf are the EgressServices that a pod is behind, sorted, each once.
func servicesOf(w *world.View, p *world.Pod) []string {
	var out []string
	for _, f := range families {
		for _, s := range w.EgressServicesOf(p, f) {
			if len(f.OfAddrs(w.PodIPs(p, ref.DefaultNetwork))) > 0 {
				out = append(out, s.Key())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (b *backing) countPods(list []string, n int) {
	for _, key := range list {
		before := b.pods[key]
		if b.pods[key] += n; b.pods[key] == 0 {
			delete(b.pods, key)
		}
		if before == 0 || before+n == 0 {
			b.News[key] = struct{}{}
		}
	}
}

// hasIngress says whether there is an EgressService, and its Service has an address for a source.
func hasIngress(w *world.World, key string, ip netip.Addr) bool {
	s, service := w.EgressService(key), w.ServiceSpec(key)
	return s != nil && s.SourceIPBy == world.SourceLoadBalancerIP && service != nil &&
		slices.Contains(service.LoadBalancerIPs, ip)
}
