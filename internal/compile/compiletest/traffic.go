package compiletest

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/world"
)

// trafficLabels are values of label "to" that EgressIPTraffics of a Small world may have, and EgressIPs select.
var trafficLabels = [...]string{"a", "b", "c"}

// TrafficSelector selects EgressIPTraffics by their label "to".
func TrafficSelector(to string) labels.Selector { return labels.SelectorFromSet(labels.Set{"to": to}) }

// Traffic is EgressIPTraffic t<i>, which TrafficSelector selects by to.
func Traffic(i int, to string, networks ...string) *world.Traffic {
	var list []netip.Prefix
	for _, n := range networks {
		list = append(list, netip.MustParsePrefix(n))
	}
	return &world.Traffic{Name: fmt.Sprint("t", i), Labels: map[string]string{"to": to},
		Networks: destinations.Of(list...)}
}

// DrawTraffic is an EgressIPTraffic that comes, changes or goes.
func DrawTraffic(t *rapid.T) func(*world.World) {
	i := rapid.IntRange(0, 2).Draw(t, "which traffic")
	if rapid.IntRange(0, 3).Draw(t, "traffic deleted") == 0 {
		return func(w *world.World) { w.DelTraffic(fmt.Sprint("t", i)) }
	}
	networks := rapid.SliceOfN(rapid.SampledFrom([]string{"172.20.0.0/16", "172.20.1.0/24", "172.21.0.0/16",
		"172.18.0.100/32", "fd00:20::/64", "fd00:21::/64", "0.0.0.0/0"}), 0, 3).Draw(t, "networks")
	o := Traffic(i, rapid.SampledFrom(trafficLabels[:]).Draw(t, "to"), networks...)
	if rapid.IntRange(0, 3).Draw(t, "traffic has a problem") == 0 {
		o.Problems = []string{"one of its networks cannot be read"}
	}
	return func(w *world.World) { w.SetTraffic(o) }
}

// Selective is a world of EgressIPs in force that select one EgressIPTraffic, t0 of label "to" a, with so many pods
// each, in one namespace; n1, from where it is seen, hosts all of them. Its networks are SomeNetworks.
func Selective(egressIPs, podsEach, networks int) *world.World {
	w := Small("n1", world.LocalGateway)
	n := Node(2)
	n.Subnets[0] = netip.PrefixFrom(V4(10, 244, 128, 0), 17)
	w.SetNode(n)
	w.SetNamespace(&world.Namespace{Name: "ns0"})
	w.SetTraffic(Traffic(0, "a", SomeNetworks(networks)...))
	holds := map[string][]netip.Addr{}
	for i := range egressIPs {
		e := EgressIP(i, fmt.Sprint("app=", i), V4(172, 18, 0, 50+i))
		e.Traffic, e.InForce = TrafficSelector("a"), [2]bool{world.V4: true}
		e.Items = []world.Assignment{{Node: "n1", IP: e.IPs[0]}}
		w.SetEgressIP(e)
		holds[e.Name] = e.IPs
	}
	w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: holds})
	for i := range egressIPs * podsEach {
		p := Pod(0, "n2")
		p.Name, p.UID, p.Labels = fmt.Sprint("p", i), fmt.Sprint(i), map[string]string{"app": fmt.Sprint(i % egressIPs)}
		p.IPs = []netip.Addr{V4(10, 244, 128+i/200, 3+i%200)}
		w.SetPod(p)
	}
	return w
}

// SomeNetworks are so many networks of which no two make a larger one together.
func SomeNetworks(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("20.%d.%d.0/24", i/128, i%128*2)
	}
	return out
}
