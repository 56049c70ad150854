package compiletest

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/world"
)

// Big is the world of the architecture's figures: 500 nodes, 10,000 pods in 1,000 namespaces, and 1,000 EgressIPs, one
// a namespace; n1, from where it is seen, hosts every tenth.
func Big() *world.World {
	w := world.New("n1", Config(world.SharedGateway))
	w.Config.ClusterSubnets[0].CIDR = netip.MustParsePrefix("10.0.0.0/8")
	for i := 1; i <= 500; i++ {
		w.SetNode(BigNode(i))
	}
	w.SetHost(Host("n1"))
	holds := map[string]map[string][]netip.Addr{}
	for i := range 1000 {
		w.SetNamespace(&world.Namespace{Name: fmt.Sprint("ns", i), Labels: map[string]string{"team": fmt.Sprint(i)}})
		e := BigEgressIP(i)
		w.SetEgressIP(e)
		if holds[e.Items[0].Node] == nil {
			holds[e.Items[0].Node] = map[string][]netip.Addr{}
		}
		holds[e.Items[0].Node][e.Name] = e.IPs
	}
	for node, h := range holds {
		w.SetHolding(&world.Holding{Node: node, BootID: "boot", Holds: h})
	}
	for i := range 10000 {
		w.SetPod(BigPod(i))
	}
	return w
}

// BigNode is the i-th node of Big, from 1.
func BigNode(i int) *world.Node {
	n := Node(1)
	n.Name, n.ID, n.ChassisID, n.BootID = fmt.Sprint("n", i), i+1, fmt.Sprint("n", i), "boot"
	n.Subnets = []netip.Prefix{netip.PrefixFrom(V4(10, i>>8, i&255, 0), 24),
		netip.PrefixFrom(ipv6Addr("fd00:10:244::", i, 0), 64)}
	n.Primary = []netip.Prefix{netip.PrefixFrom(V4(172, 18, i>>8, i&255), 16)}
	n.HostAddrs = []netip.Addr{n.Primary[0].Addr()}
	return n
}

// BigEgressIP is the i-th EgressIP of Big.
func BigEgressIP(i int) *world.EgressIP {
	e := EgressIP(i, "", V4(172, 18, 100+i>>8, i&255))
	e.Namespaces = labels.SelectorFromSet(labels.Set{"team": fmt.Sprint(i)})
	host := fmt.Sprint("n", i%500+1)
	if i%10 == 0 {
		host = "n1"
	}
	e.Items, e.InForce[world.V4] = []world.Assignment{{Node: host, IP: e.IPs[0]}}, true
	return e
}

// BigPod is the i-th pod of Big.
func BigPod(i int) *world.Pod {
	node := i%500 + 1
	return &world.Pod{
		Namespace: fmt.Sprint("ns", i/10), Name: fmt.Sprint("p", i), UID: fmt.Sprint(i), Node: fmt.Sprint("n", node),
		Labels: map[string]string{"app": "web"}, IPs: []netip.Addr{V4(10, node>>8, node&255, 10+i/500)},
	}
}
