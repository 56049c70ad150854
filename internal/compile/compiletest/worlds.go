// Package compiletest makes worlds for tests and benchmarks: small ones that change at random, and big ones.
package compiletest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Config is a dual-stack cluster's.
func Config(mode world.GatewayMode) *world.Config {
	return &world.Config{
		GatewayMode: mode,
		ClusterSubnets: []world.ClusterSubnet{
			{CIDR: netip.MustParsePrefix("10.244.0.0/16"), NodeLen: 24},
			{CIDR: netip.MustParsePrefix("fd00:10:244::/48"), NodeLen: 64},
		},
		ServiceSubnets: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"),
			netip.MustParsePrefix("fd00:10:96::/112")},
		JoinSubnets: world.DefaultJoinSubnets(), TransitSubnets: world.DefaultTransitSubnets(),
		SlotSubnets: world.DefaultSlotSubnets(), MasqueradeSubnets: world.DefaultMasqueradeSubnets(),
		EncapPort: world.GenevePort, ReachabilityTimeout: world.DefaultReachabilityTimeout,
		UplinkInterface: "eth0", Bridge: "breth0", UserspaceOVS: true, AgentPort: 9413,
	}
}

// Small is a world of three ready nodes n1, n2, n3 seen from self, with nothing else in it.
func Small(self string, mode world.GatewayMode) *world.World {
	w := world.New(self, Config(mode))
	for i := 1; i <= 3; i++ {
		w.SetNode(Node(i))
	}
	w.SetHost(Host(self))
	return w
}

// Node is node n<i>, with id i+1 and the i-th subnets and addresses.
func Node(i int) *world.Node {
	name := fmt.Sprint("n", i)
	return &world.Node{
		Name: name, ID: i + 1, ChassisID: name, Ready: true, BootID: "boot-" + name,
		Labels: map[string]string{"k8s.ovn.org/egress-assignable": ""},
		Subnets: []netip.Prefix{netip.PrefixFrom(V4(10, 244, i, 0), 24),
			netip.PrefixFrom(ipv6Addr("fd00:10:244::", i, 0), 64)},
		Primary:   []netip.Prefix{netip.PrefixFrom(Primary(i), 24), netip.PrefixFrom(primaryIPv6(i), 64)},
		HostAddrs: []netip.Addr{Primary(i), primaryIPv6(i), secondaryAddrs(i)[0].Addr(), secondaryAddrs(i)[1].Addr()},
		CIDRs: append([]netip.Prefix{netip.PrefixFrom(Primary(i), 24), netip.PrefixFrom(primaryIPv6(i), 64)},
			secondaryAddrs(i)...),
		Gateways:  gatewayAddrs(),
		UplinkMAC: HardwareAddr(fmt.Sprintf("02:00:00:00:00:%02x", i)),
	}
}

// Recorded is Node as the controller has recorded it.
func Recorded(i int) *world.Node {
	n := Node(i)
	n.Record = world.Record{Addrs: []netip.Addr{Primary(i), primaryIPv6(i)}, MAC: n.UplinkMAC}
	return n
}

// Host is what node n<i> finds on itself.
func Host(self string) *world.Host {
	var i int
	fmt.Sscanf(self, "n%d", &i)
	return &world.Host{
		UplinkMAC: fmt.Sprintf("02:00:00:00:00:%02x", i), MTU: 1500, Primary: Node(i).Primary, Addrs: Node(i).HostAddrs,
		Gateways: gatewayAddrs(),
		Links: []world.Link{{
			Name: "eth1", Index: 3, MAC: fmt.Sprintf("02:00:00:00:01:%02x", i), Addrs: secondaryAddrs(i),
			Routes: []world.LinkRoute{{Dst: secondaryAddrs(i)[0].Masked()}, {Dst: secondaryAddrs(i)[1].Masked()}},
		}},
	}
}

// secondaryAddrs are node n<i>'s addresses on its link eth1.
func secondaryAddrs(i int) []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(V4(172, 19, 1, i+1), 24),
		netip.PrefixFrom(ipv6Addr("fc00:f853:cce:1::", 0, i+1), 64)}
}

// HardwareAddr is a test's own address.
func HardwareAddr(text string) world.HardwareAddr {
	a, err := world.ParseHardwareAddr(text)
	if err != nil {
		panic(err)
	}
	return a
}

// Primary is node n<i>'s IPv4 address.
func Primary(i int) netip.Addr { return V4(172, 18, 0, i+1) }
func primaryIPv6(i int) netip.Addr {
	return world.Nth(netip.MustParsePrefix("fc00:f853:ccd:e793::/64"), i+1)
}
func gatewayAddrs() []netip.Addr {
	return []netip.Addr{V4(172, 18, 0, 1), netip.MustParseAddr("fc00:f853:ccd:e793::1")}
}

// V4 is an IPv4 address.
func V4(a, b, c, d int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a), byte(b), byte(c), byte(d)})
}

func ipv6Addr(prefix string, subnet, host int) netip.Addr {
	b := netip.MustParseAddr(prefix).As16()
	b[6], b[7], b[14], b[15] = byte(subnet>>8), byte(subnet), byte(host>>8), byte(host)
	return netip.AddrFrom16(b)
}

// Pod is pod ns<i%3>/p<i> on a node n<j>, with the addresses that go with both.
func Pod(i int, node string) *world.Pod {
	var j int
	fmt.Sscanf(node, "n%d", &j)
	return &world.Pod{
		Namespace: fmt.Sprint("ns", i%3), Name: fmt.Sprint("p", i), UID: fmt.Sprint("uid-", i), Node: node,
		Labels: map[string]string{"app": []string{"web", "db"}[i%2]}, IPs: PodIPs(i, j),
	}
}

// PodIPs are the i-th pod addresses of node n<j>.
func PodIPs(i, j int) []netip.Addr {
	return []netip.Addr{V4(10, 244, j, 10+i), ipv6Addr("fd00:10:244::", j, 10+i)}
}

// Attachment is a pod's port.
func Attachment(p *world.Pod) *world.Attachment {
	return &world.Attachment{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, HostIface: "veth" + p.Name, MAC: world.MAC(p.IPs[0]),
		IPs: p.IPs, Further: p.Further,
	}
}

// EgressIP is EgressIP e<i>, the i-th oldest, for the pods of all namespaces that match the selector text.
func EgressIP(i int, pods string, ips ...netip.Addr) *world.EgressIP {
	sel, err := labels.Parse(pods)
	if err != nil {
		panic(err) // a test's own text
	}
	return &world.EgressIP{
		Name: fmt.Sprint("e", i), UID: fmt.Sprint("uid-e", i), Created: time.Unix(int64(1000+i), 0), IPs: ips,
		Namespaces: labels.Everything(), Pods: sel,
	}
}

// EgressAddr is the i-th address for egress IPs on the nodes' network, of each family.
func EgressAddr(i int) []netip.Addr {
	return []netip.Addr{V4(172, 18, 0, 50+i), world.Nth(netip.MustParsePrefix("fc00:f853:ccd:e793::/64"), 0x50+i)}
}

// SecondaryAddr is the i-th address for egress IPs on the network of the nodes' eth1, of each family.
func SecondaryAddr(i int) []netip.Addr {
	return []netip.Addr{V4(172, 19, 1, 50+i), world.Nth(secondaryAddrs(0)[1].Masked(), 0x50+i)}
}

// egressAddrs are the addresses of EgressIP e<i>: two of each family, one of them on the secondary network.
func egressAddrs(i int) []netip.Addr { return append(EgressAddr(i), SecondaryAddr(i)...) }

// Change makes one random change of a Small world.
func Change(t *rapid.T, w *world.World) { Draw(t, w)(w) }

// Draw is one random change of a Small world with w's Self, to be made later or never.
func Draw(t *rapid.T, w *world.World) func(*world.World) {
	i := rapid.IntRange(0, 5).Draw(t, "i")
	node := fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "node"))
	switch rapid.IntRange(0, 24).Draw(t, "change") {
	case 0:
		n := changedNode(t, node)
		return func(w *world.World) { w.SetNode(n) }
	case 1:
		if node != w.Self {
			return func(w *world.World) { w.DelNode(node) }
		}
		h := changedHost(t, w.Self)
		return func(w *world.World) { w.SetHost(h) }
	case 2, 3:
		return changedPod(t, i, node)
	case 4:
		p := Pod(i, node)
		return func(w *world.World) {
			w.DelPod(p.Key())
			w.DelAttachment(p.Key(), "veth"+p.Name)
		}
	case 5:
		n := someNamespace(i)
		return func(w *world.World) { w.SetNamespace(n) }
	case 6:
		return func(w *world.World) { w.DelNamespace(fmt.Sprint("ns", i%3)) }
	case 7, 8, 9:
		e := randomEgressIP(t, i%4)
		return func(w *world.World) { w.SetEgressIP(e) }
	case 10:
		return func(w *world.World) { w.DelEgressIP(fmt.Sprint("e", i%4)) }
	case 11:
		return drawReport(t, w, node)
	case 12:
		return randomYield(t, world.EgressAddress{Object: fmt.Sprint("e", i%4), IP: EgressAddr(2 * (i % 4))[0]})
	case 13:
		s := RandomService(t, i)
		return func(w *world.World) { w.SetService(s) }
	case 15:
		return func(w *world.World) { w.DelService(fmt.Sprint("default/s", i)) }
	case 14:
		state := world.Tunnel(rapid.IntRange(0, 2).Draw(t, "tunnel"))
		return func(w *world.World) { w.SetTunnel(node, state) }
	case 17, 18, 19, 20, 21:
		return []func(*rapid.T) func(*world.World){drawNetwork, DrawTraffic, DrawEgressService}[i%3](t)
	case 22:
		claim := world.EgressAddress{Object: fmt.Sprint("e", i%4), IP: EgressAddr(i % 4)[0]}
		overdue := rapid.SampledFrom([]string{"", "n1", "n2"}).Draw(t, "overdue")
		return func(w *world.World) { w.SetOverdue(claim, overdue) }
	case 23:
		n := oddNode(t, 1+i%3)
		return func(w *world.World) { w.SetNode(n) }
	}
	return []func(*world.World){apiServers(i % 2), drawClearance(t, node, i)}[i/2%2]
}

// drawClearance changes what is known of a node, or of the former claims to a pod's address, or makes it count.
func drawClearance(t *rapid.T, node string, i int) func(*world.World) {
	c := world.Clearance{Cleared: rapid.Bool().Draw(t, "cleared"), Late: rapid.Bool().Draw(t, "late")}
	formers := func(*world.World) []world.Former { return nil }
	if rapid.Bool().Draw(t, "formers") {
		formers = func(w *world.World) []world.Former {
			by := w.ClaimantOf(ref.OfKey(fmt.Sprint("e", i%4)))
			return []world.Former{{By: []world.Claimant{by}, To: destinations.Everything(), Nodes: []string{node}}}
		}
	}
	return []func(*world.World){
		(*world.World).BeginClearing,
		func(w *world.World) { w.SetClearance(node, c) },
		func(w *world.World) { w.SetFormers(world.PodAddr{IP: Pod(i, node).IPs[0]}, formers(w)) },
	}[i%3]
}

// apiServers has one of two addresses be the API server's.
func apiServers(i int) func(*world.World) {
	s := &world.Service{Namespace: "default", Name: "kubernetes", ClusterIPs: []netip.Addr{V4(10, 96, 0, 1)},
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 443,
			Endpoints: []world.Endpoint{{AddrPort: netip.AddrPortFrom(V4(172, 18, 0, 250+i), 6443), Ready: true}}}}}
	return func(w *world.World) { w.SetService(s) }
}

// oddNode is a recorded node that is recreated or taken down, or whose report is incomplete.
func oddNode(t *rapid.T, i int) *world.Node {
	n := Recorded(i)
	n.UID = rapid.SampledFrom([]string{"", "anew"}).Draw(t, "UID of the node")
	n.Deleting, n.Cordoned = onceIn(t, 6, "node is being deleted"), onceIn(t, 6, "cordoned")
	n.LetsExternalIPs = rapid.Bool().Draw(t, "lets externalIPs")
	if rapid.Bool().Draw(t, "kubelet says its address") {
		n.InternalIPs = []netip.Addr{Primary(rapid.IntRange(1, 3).Draw(t, "kubelet's address"))}
	}
	if onceIn(t, 4, "half a record") {
		n.Record.Addrs = n.Record.Addrs[:1]
	}
	if onceIn(t, 6, "no chassis") {
		n.ChassisID = ""
	}
	joinNetworks(t, n)
	return drawClaims(t, n)
}

// onceIn is true once in so many draws.
func onceIn(t *rapid.T, draws int, label string) bool {
	return rapid.IntRange(0, draws-1).Draw(t, label) == 0
}

// drawReport is what a node says it holds, or that it says nothing any more.
func drawReport(t *rapid.T, w *world.World, node string) func(*world.World) {
	if rapid.IntRange(0, 4).Draw(t, "report deleted") == 0 {
		return func(w *world.World) { w.DelHolding(node) }
	}
	h := randomHolding(t, node)
	if node == w.Self && rapid.Bool().Draw(t, "by itself") {
		return func(w *world.World) { w.SetOwn(h) }
	}
	return func(w *world.World) { w.SetHolding(h) }
}

// changedPod has some addresses, or says that it has those of another pod and was never attached.
func changedPod(t *rapid.T, i int, node string) func(*world.World) {
	p := inNetworks(t, Pod(i, node))
	if rapid.IntRange(0, 4).Draw(t, "pod lies") == 0 {
		p.IPs = PodIPs(i, 2)
	}
	oddPod(t, p, i)
	p.Confirmed, p.Terminating = rapid.Bool().Draw(t, "confirmed"), rapid.Bool().Draw(t, "terminating")
	if rapid.IntRange(0, 3).Draw(t, "another's address") > 0 {
		return func(w *world.World) {
			w.SetPod(p)
			attachPod(w, p)
		}
	}
	var j int
	fmt.Sscanf(node, "n%d", &j)
	p.IPs = append(PodIPs((i+1)%6, j), p.IPs...)
	return func(w *world.World) {
		w.SetPod(p)
		w.DelAttachment(p.Key(), "veth"+p.Name)
	}
}

// oddPod makes a pod completed, host-networked, recreated, running, or selected by other objects.
func oddPod(t *rapid.T, p *world.Pod, i int) {
	switch rapid.IntRange(0, 11).Draw(t, "oddity") {
	case 0:
		p.Completed = true
	case 1:
		p.HostNetwork = true
	case 2:
		p.UID += "again"
	case 3:
		p.Labels = nil
	case 4:
		p.Labels = map[string]string{"app": "web"}
	case 5:
		p.Labels = map[string]string{"app": "db"}
	case 6:
		p.Created = time.Unix(int64(i), 0)
	case 7, 8:
		p.Running = true
	}
}

func attachPod(w *world.World, p *world.Pod) {
	if p.Node != w.Self {
		w.DelAttachment(p.Key(), "veth"+p.Name)
		return
	}
	w.SetAttachment(Attachment(p))
}

// changedHost has its second link, or lost it, or cannot use it; its index changes each time that it comes back.
func changedHost(t *rapid.T, self string) *world.Host {
	h := Host(self)
	switch rapid.IntRange(0, 4).Draw(t, "link") {
	case 0:
		h.Links = nil
	case 1:
		h.Links[0].Fault = [2]string{"down", "down"}
	case 2:
		h.Links[0].Index++
		h.Links[0].VRF = "blue"
	case 3:
		h.Links[0].Routes = append(h.Links[0].Routes, world.LinkRoute{Dst: netip.PrefixFrom(V4(10, 9, 0, 0), 16),
			Via: V4(172, 19, 1, 254)})
	}
	return h
}

func changedNode(t *rapid.T, name string) *world.Node {
	var i int
	fmt.Sscanf(name, "n%d", &i)
	n := Node(i)
	n.Ready = rapid.Bool().Draw(t, "ready")
	if rapid.Bool().Draw(t, "unlabelled") {
		n.Labels = nil
	}
	joinNetworks(t, n)
	return drawClaims(t, n)
}

// drawClaims is a node that may say that it has what is another's, or an egress IP.
func drawClaims(t *rapid.T, n *world.Node) *world.Node {
	other := Node(rapid.IntRange(1, 3).Draw(t, "other"))
	switch rapid.IntRange(0, 9).Draw(t, "claims") {
	case 0:
		n.ID = other.ID
	case 1:
		n.Subnets = other.Subnets
	case 2:
		n.Primary = other.Primary
	case 3:
		n.HostAddrs = append(n.HostAddrs, egressAddrs(0)...)
	case 4:
		n.Subnets = nil
	case 5:
		n.BootID = "before"
	}
	return n
}

func randomEgressIP(t *rapid.T, i int) *world.EgressIP {
	e := EgressIP(i, rapid.SampledFrom([]string{"", "app=web", "app!=web", "!app"}).Draw(t, "selector"),
		egressAddrs(i)...)
	for _, ip := range e.IPs {
		if n := rapid.IntRange(0, 3).Draw(t, "assigned to"); n > 0 {
			e.Items = append(e.Items, world.Assignment{Node: fmt.Sprint("n", n), IP: ip})
		}
	}
	for _, ip := range e.IPs {
		if n := rapid.IntRange(0, 6).Draw(t, "leaving"); n > 0 && n <= 3 && !e.Names(fmt.Sprint("n", n), ip) {
			e.Leaving = append(e.Leaving, world.Leaving{Node: fmt.Sprint("n", n), IP: ip})
		}
	}
	for _, ip := range e.IPs {
		if e.Assignee(ip) != "" || rapid.IntRange(0, 3).Draw(t, "granted") == 0 {
			e.Granted = append(e.Granted, ip)
		}
	}
	if network := rapid.IntRange(0, 2*len(trafficLabels)).Draw(t, "traffic"); network < len(trafficLabels) {
		e.Traffic = TrafficSelector(trafficLabels[network])
	} else if network == 2*len(trafficLabels) {
		e.TrafficProblem, e.TrafficUnknown = "spec.trafficSelector: no such key", true
	}
	oddEgressIP(t, e, i)
	e.InForce = [2]bool{rapid.Bool().Draw(t, "v4 in force"), rapid.Bool().Draw(t, "v6 in force")}
	return e
}

// oddEgressIP makes an EgressIP ask for drop, have a mark, be recreated, have assignment times, or ask for many
// addresses.
func oddEgressIP(t *rapid.T, e *world.EgressIP, i int) {
	e.DropWhenUnassigned = onceIn(t, 5, "drop")
	if rapid.Bool().Draw(t, "marked") {
		e.Mark = world.FirstMark + rapid.IntRange(i, i+1).Draw(t, "mark") // another one may have it
	}
	if onceIn(t, 5, "made anew") {
		e.Created = time.Unix(int64(1000+rapid.IntRange(0, 3).Draw(t, "age")), 0)
		e.UID += "again"
	}
	if rapid.Bool().Draw(t, "dated") {
		for _, it := range e.Items {
			e.Given = append(e.Given, drawGiven(t, it))
		}
		for k := range e.Leaving {
			e.Leaving[k].Given = ref.Since(rapid.IntRange(0, 2).Draw(t, "given to the one that leaves"))
		}
	}
	if onceIn(t, 10, "many addresses") {
		for k := range 9 {
			e.IPs = append(e.IPs, V4(172, 18, 0, 100+10*i+k))
		}
	}
}

func drawGiven(t *rapid.T, it world.Assignment) world.Given {
	return world.Given{Assignment: it, Since: ref.Since(rapid.IntRange(1, 2).Draw(t, "given since"))}
}

func randomYield(t *rapid.T, c world.EgressAddress) func(*world.World) {
	to := rapid.SampledFrom([]string{"", "n2", "ends"}).Draw(t, "yields to")
	y := &world.Yield{To: to, Draining: rapid.Bool().Draw(t, "draining")}
	if to == "ends" {
		y = nil
	}
	return func(w *world.World) { w.SetYielded(c, y) }
}

func randomHolding(t *rapid.T, node string) *world.Holding {
	h := &world.Holding{
		Node: node, BootID: "boot-" + node, Holds: map[string][]netip.Addr{}, Steers: map[string][]world.Assignment{},
		Problems: map[string]string{}, Conflicts: map[string][]world.Conflict{},
	}
	if rapid.IntRange(0, 4).Draw(t, "rebooted") == 0 {
		h.BootID = "before"
	}
	for i := range 4 {
		for _, ip := range egressAddrs(i) {
			if rapid.Bool().Draw(t, "holds") {
				h.Holds[fmt.Sprint("e", i)] = append(h.Holds[fmt.Sprint("e", i)], ip)
			}
		}
	}
	for i := range 4 {
		for _, ip := range EgressAddr(20 + i) {
			if key := EgressService(i).Key(); rapid.Bool().Draw(t, "holds for a service") {
				h.Holds[key] = append(h.Holds[key], ip)
			}
		}
	}
	if rapid.Bool().Draw(t, "dated report") {
		for _, object := range slices.Sorted(maps.Keys(h.Holds)) {
			for _, ip := range h.Holds[object] {
				h.SayHeld(object, ip, ref.Since(rapid.IntRange(0, 2).Draw(t, "held since")))
			}
		}
	}
	about := rapid.SampledFrom([]string{"", "e0", "e1", "e2", "e3", "ns0/s0", "ns1/s1"}).Draw(t, "says more about")
	switch ip := EgressAddr(0)[0]; rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		h.Problems[about] = "nb refused it"
	case 1:
		h.Conflicts[about] = []world.Conflict{{IP: ip, MAC: Node(3).UplinkMAC}}
	case 2:
		h.Steers[about] = []world.Assignment{{Node: node, IP: ip}}
		h.SteersMore = rapid.Bool().Draw(t, "and more")
	}
	return h
}

// someNamespace is one of three, which may ask for a network of its own.
func someNamespace(i int) *world.Namespace {
	return &world.Namespace{Name: fmt.Sprint("ns", i%3), OwnNetwork: i >= 3,
		Labels: map[string]string{"env": fmt.Sprint(i)}}
}
