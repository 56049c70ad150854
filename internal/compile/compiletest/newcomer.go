package compiletest

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// Newcomer is a world and an EgressIP that comes, is given to a node, comes into force, and goes, in a namespace with
// pods that it does not select.
type Newcomer struct {
	World *world.World
	name  string
}

// chosen is what the newcomer's pods have as label app.
const chosen = "chosen"

// NewNewcomer is seen from self. Of the ten pods that it selects two run on n1; of others there are so many in the
// namespace, on n2.
func NewNewcomer(self string, others int) *Newcomer {
	w := Small(self, world.SharedGateway)
	n := Node(2)
	n.Subnets[0] = netip.PrefixFrom(V4(10, 244, 128, 0), 17)
	w.SetNode(n)
	w.SetNamespace(&world.Namespace{Name: "ns0"})
	for i := range 10 {
		p := newcomersPod(i, chosen, []string{"n1", "n2"}[min(i/2, 1)])
		w.SetPod(p)
	}
	for i := range others {
		w.SetPod(newcomersPod(10+i, "other", "n2"))
	}
	return &Newcomer{World: w, name: "e0"}
}

// newcomersPod is a running pod of the newcomer's namespace.
func newcomersPod(i int, app, node string) *world.Pod {
	p := Pod(0, node)
	p.Name, p.UID, p.Labels, p.Running = fmt.Sprint("c", i), fmt.Sprint("c", i), map[string]string{"app": app}, true
	p.IPs = []netip.Addr{V4(10, 244, 128+i/200, 3+i%200)}
	if node == "n1" {
		p.IPs = []netip.Addr{V4(10, 244, 1, 3+i)}
	}
	return p
}

// Life is all that happens to the EgressIP, in order; n3 hosts it.
func (c *Newcomer) Life() []func() {
	ip := V4(172, 18, 0, 77)
	next := func(change func(*world.EgressIP)) func() {
		return func() {
			e := EgressIP(0, "app="+chosen, ip)
			change(e)
			c.World.SetEgressIP(e)
		}
	}
	given := func(e *world.EgressIP) { e.Items = []world.Assignment{{Node: "n3", IP: ip}} }
	holds := func(ips map[string][]netip.Addr) func() {
		return func() {
			c.World.SetHolding(&world.Holding{Node: "n3", BootID: "boot-n3", Holds: ips})
		}
	}
	return []func(){
		next(func(*world.EgressIP) {}),
		next(given),
		holds(map[string][]netip.Addr{c.name: {ip}}),
		next(func(e *world.EgressIP) { given(e); e.InForce[world.V4] = true }),
		func() { c.World.DelEgressIP(c.name) },
		holds(nil),
	}
}
