package egressip_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// networkOf are the labels of namespaces whose pods have network blue as their primary one.
var networkOf = map[string]map[string]string{"ns2": {"network": "blue"}}

// blue has the default network's very subnets.
func blue() *world.Network {
	n := *compiletest.Config(world.SharedGateway).DefaultNetwork()
	n.Name, n.ID, n.Namespaces = "blue", 1, []string{"ns2"}
	return &n
}

func names(network string) plan.Names {
	if network == "blue" {
		return plan.Names{Network: "blue", ID: 1}
	}
	return plan.DefaultNames()
}

// simulatedNode has the same subnets of both networks.
func simulatedNode(name string) *world.Node {
	n := compiletest.Node(int(name[1] - '0'))
	n.Further = map[string]world.NodeNetwork{"blue": {Subnets: n.Subnets}}
	return n
}

func inBlue(a *world.Attachment) bool { return len(a.Further) > 0 }

// joinBlue gives a pod of a namespace of network blue the first addresses of its node that are free there. Pods of the
// default network have the same.
func joinBlue(own *world.World, node string, p *world.Pod, a *world.Attachment) {
	if networkOf[p.Namespace] != nil {
		ips := freeIPs(own, node, "blue")
		p.Further = []world.Interface{{Network: "blue", MAC: world.MAC(ips[0]), IPs: ips}}
		a.Further = p.Further
	}
}

// TestOfTwoNetworks: two pods on one node with the same addresses in two networks. That of network blue leaves with the
// node's address until an EgressIP selects it, then with the egress IP, and by its own network alone. While the
// EgressIP has no mark, the pod sends nothing outside, and the node says so. That of the default network leaves with
// the egress IP, and both reach pods of their own network and nodes.
func TestOfTwoNetworks(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, c := range []struct {
			selected bool
			mark     int
		}{{false, world.FirstMark}, {true, world.FirstMark}, {true, 0}} {
			worlds := twoNetworks(mode, c.selected, c.mark)
			net := trace.Network{}
			for name, w := range worlds {
				net[name] = compile.Full(w, all.Features())
			}
			told := strings.Contains(net["n1"].Text(), "problem of EgressIP/e0 ")
			if told != (c.mark == 0) {
				t.Errorf("%s: n1 tells of it: %t", mode, told)
			}
			for f := range world.Family(2) {
				node := compiletest.Node(1).HostAddrs[f].String()
				want := "outside by n1 as " + node
				if c.selected {
					want = "outside by n2 as " + compiletest.EgressAddr(0)[f].String()
				}
				if c.mark == 0 {
					want = "dropped"
				}
				checkNetworks(t, mode, net, f, want)
			}
		}
	}
}

// twoNetworks are three nodes, with pod 0 of the default network and pod 2 of network blue on n1. Pod 2's addresses are
// pod 0's in blue, and its own in the default network. EgressIP e0 is held by n2, and may select only namespace ns0.
func twoNetworks(mode world.GatewayMode, all bool, mark int) map[string]*world.World {
	out := map[string]*world.World{}
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	e.Mark = mark
	if e.InForce = [2]bool{true, true}; !all {
		e.Namespaces = labels.SelectorFromSet(labels.Set{"network": ""})
	}
	held := &world.Holding{Node: "n2", BootID: "boot-n2", Holds: map[string][]netip.Addr{"e0": e.IPs}}
	for _, ip := range e.IPs {
		e.Items = append(e.Items, world.Assignment{Node: "n2", IP: ip})
	}
	for i := 1; i <= 3; i++ {
		name := fmt.Sprint("n", i)
		w := compiletest.Small(name, mode)
		w.SetNetwork(blue())
		w.SetNamespace(&world.Namespace{Name: "ns0", Labels: map[string]string{"network": ""}})
		w.SetNamespace(&world.Namespace{Name: "ns2", Labels: networkOf["ns2"], OwnNetwork: true})
		for j := 1; j <= 3; j++ {
			w.SetNode(simulatedNode(fmt.Sprint("n", j)))
		}
		w.SetEgressIP(e)
		w.SetHolding(held)
		addPods(w)
		out[name] = w
	}
	return out
}

// addPods adds pods 0 and 2 on n1, and pod 5, of network blue, on n3.
func addPods(w *world.World) {
	for i, node := range map[int]string{0: "n1", 2: "n1", 5: "n3"} {
		p := compiletest.Pod(i, node)
		a := compiletest.Attachment(p)
		if networkOf[p.Namespace] != nil {
			ips := compiletest.PodIPs(0, int(node[1]-'0'))
			p.Further = []world.Interface{{Network: "blue", MAC: world.MAC(ips[0]), IPs: ips}}
			a.Further = p.Further
		}
		if w.SetPod(p); w.Self == node {
			w.SetAttachment(a)
		}
	}
}

func checkNetworks(t *testing.T, mode world.GatewayMode, net trace.Network, f world.Family, blues string) {
	t.Helper()
	plans, err := trace.Read(net)
	if err != nil {
		t.Fatal(err)
	}
	shared, own, far := compiletest.PodIPs(0, 1)[f], compiletest.PodIPs(2, 1)[f], compiletest.PodIPs(0, 3)[f]
	outside := netip.MustParseAddr([...]string{"172.18.0.100", "fc00:f853:ccd:e793::100"}[f])
	node, nodes := compiletest.Node(1).HostAddrs[f].String(), compiletest.Node(2).HostAddrs[f]
	masquerade, _ := blue().Masquerade(f)
	for _, x := range []struct {
		what     string
		network  string
		src, dst netip.Addr
		want     string
	}{
		{"the default network's pod", ref.DefaultNetwork, shared, outside,
			"outside by n2 as " + compiletest.EgressAddr(0)[f].String()},
		{"blue's pod", "blue", shared, outside, blues},
		{"blue's pod by the default network", ref.DefaultNetwork, own, outside, "dropped"},
		{"blue's pod to another", "blue", shared, far, "pod " + far.String() + " at n3"},
		{"blue's pod to a node", "blue", shared, nodes, "host " + nodes.String() + " at n2 as " + node},
		{"blue's pod to its own node", "blue", shared, compiletest.Node(1).HostAddrs[f],
			"host " + node + " at n1 as " + masquerade.String()},
	} {
		p := trace.Packet{Src: x.src, Dst: x.dst, Proto: "udp", DstPort: 9, Network: names(x.network)}
		ends := plans.Walk(p)
		if have := trace.Sentences(ends); !strings.HasPrefix(have, x.want) {
			t.Errorf("%s: %s: %s, want %s\n%v", mode, x.what, have, x.want, ends[0].Steps)
		}
	}
}

// TestUntranslatedStays: packets that leave a network with a pod's own address are dropped, also where the gateway
// router has no row yet that translates them.
func TestUntranslatedStays(t *testing.T) {
	net := trace.Network{}
	for name, w := range twoNetworks(world.SharedGateway, false, world.FirstMark) {
		net[name] = compile.Full(w, all.Features())
	}
	n1 := net["n1"]
	for id, row := range n1.NB.Rows() {
		if row.Parent == plan.Router(names("blue").GatewayRouter("n1")) && id.Table == "NAT" {
			delete(n1.NB, id)
		}
	}
	plans, err := trace.Read(net)
	if err != nil {
		t.Fatal(err)
	}
	for f, dst := range []string{"172.18.0.100", "fc00:f853:ccd:e793::100"} {
		p := trace.Packet{Src: compiletest.PodIPs(0, 1)[f], Dst: netip.MustParseAddr(dst), Proto: "udp", DstPort: 9,
			Network: names("blue")}
		have := trace.Sentences(plans.Walk(p))
		if !strings.HasPrefix(have, "dropped at n1: policy blue_egressip-untranslated") {
			t.Errorf("%s", have)
		}
	}
}

// TestPrimaryNetworkChanges: a pod's memberships follow when its namespace comes to have another primary network.
func TestPrimaryNetworkChanges(t *testing.T) {
	w := twoNetworks(world.SharedGateway, true, world.FirstMark)["n1"]
	m := compile.NewMemo(all.Features())
	m.Update(w)
	for _, n := range []map[string]string{nil, networkOf["ns2"]} {
		w.SetNamespace(&world.Namespace{Name: "ns2", Labels: n})
		m.Update(w)
		if have, want := m.State.Text(), compile.Full(w, all.Features()).Text(); have != want {
			t.Errorf("with labels %v of its namespace:\n%s\nwant\n%s", n, have, want)
		}
	}
	w.DelNetwork("blue")
	m.Update(w)
	if have, want := m.State.Text(), compile.Full(w, all.Features()).Text(); have != want {
		t.Errorf("without the network:\n%s\nwant\n%s", have, want)
	}
}

// TestRowsStayConstant: one more pod of a network is a member of sets, at its node and at the holder, and brings no
// row.
func TestRowsStayConstant(t *testing.T) {
	rows := func(pods int) map[string]int {
		out := map[string]int{}
		for name, w := range twoNetworks(world.LocalGateway, true, world.FirstMark) {
			for i := range pods {
				p := compiletest.Pod(8+3*i, "n1") // of ns2
				ips := compiletest.PodIPs(50+i, 1)
				p.Further = []world.Interface{{Network: "blue", MAC: world.MAC(ips[0]), IPs: ips}}
				w.SetPod(p)
			}
			s := compile.Full(w, all.Features())
			for id := range s.NB.Rows() {
				out[name+" "+id.Table]++
			}
			for e := range s.SetElems.Rows() {
				if strings.HasPrefix(e.Set, "blue_") {
					out[name+" members"]++
				}
			}
			for range s.Flows.Rows() {
				out[name+" flows"]++
			}
		}
		return out
	}
	one, five := rows(1), rows(5)
	for what, have := range five {
		want := one[what]
		switch what {
		case "n1 members":
			want += 4 * 2 * 2 // families; under the leak filter, and steered
		case "n2 members":
			want += 4 * 2
		}
		if have != want {
			t.Errorf("with 4 pods more: %s: %d, want %d", what, have, want)
		}
	}
}
