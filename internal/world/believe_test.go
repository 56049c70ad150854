package world_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// liar is n3, and says that it has what is n1's.
func liar(change func(n3, n1 *world.Node)) *world.Node {
	n := compiletest.Node(3)
	change(n, compiletest.Node(1))
	return n
}

var lies = map[string]func(n3, n1 *world.Node){
	"id":      func(n3, n1 *world.Node) { n3.ID = n1.ID },
	"subnets": func(n3, n1 *world.Node) { n3.Subnets = n1.Subnets },
	"primary": func(n3, n1 *world.Node) { n3.Primary = n1.Primary },
	"mac":     func(n3, n1 *world.Node) { n3.UplinkMAC = n1.UplinkMAC },
}

// TestFormerKeeps: of two nodes that claim the same, the one that was known first keeps it, whatever it is called and
// however often either speaks, until it gives it up.
func TestFormerKeeps(t *testing.T) {
	for name, lie := range lies {
		w := world.New("n2", compiletest.Config(world.SharedGateway))
		for _, i := range []int{1, 2} {
			w.SetNode(compiletest.Node(i))
		}
		w.SetNode(liar(lie))
		w.SetNode(compiletest.Node(1))
		w.SetNode(liar(lie))
		n1, n3 := w.Node("n1"), w.Node("n3")
		if !reflect.DeepEqual(n1, compiletest.Node(1)) {
			t.Errorf("%s: n1 lost something: %+v", name, n1)
		}
		if n3.ID == n1.ID || overlap(n3.Subnets, n1.Subnets) || overlap(n3.Primary, n1.Primary) ||
			n3.UplinkMAC == n1.UplinkMAC {
			t.Errorf("%s: n3 is believed: %+v", name, n3)
		}
		if told := strings.Contains(fmt.Sprint(n3.Problems), "also node n1's"); !told {
			t.Errorf("%s: problems %q", name, n3.Problems)
		}
		touched := w.ChangesOf(func() { w.DelNode("n1") })
		if have := w.Node("n3"); !reflect.DeepEqual(have, liar(lie)) ||
			!slices.Contains(touched, world.Entry{Kind: world.KindNode, Key: "n3"}) {
			t.Errorf("%s: without n1 it is n3's: %+v", name, have)
		}
	}
}

func overlap[T comparable](a, b []T) bool {
	return slices.ContainsFunc(a, func(x T) bool { return slices.Contains(b, x) })
}

// TestSelfIsBelieved: no other node takes from this one what this one says that it has.
func TestSelfIsBelieved(t *testing.T) {
	for name, lie := range lies {
		w := world.New("n1", compiletest.Config(world.SharedGateway))
		w.SetNode(liar(lie))
		w.SetNode(compiletest.Node(1))
		if !reflect.DeepEqual(w.Node("n1"), compiletest.Node(1)) || reflect.DeepEqual(w.Node("n3"), liar(lie)) {
			t.Errorf("%s: n1 is %+v, n3 %+v", name, w.Node("n1"), w.Node("n3"))
		}
	}
}

// TestListsTakeNothing: what a node lists beside its primary address makes no host outside its address to other nodes,
// and is there for a node to come.
func TestListsTakeNothing(t *testing.T) {
	w := world.New("n1", compiletest.Config(world.SharedGateway))
	w.SetNode(compiletest.Node(1))
	lists := liar(func(n3, _ *world.Node) {
		n3.HostAddrs = append(n3.HostAddrs, slices.Concat(compiletest.Node(2).HostAddrs,
			[]netip.Addr{netip.MustParseAddr("8.8.8.8")})...)
		n3.InternalIPs = []netip.Addr{netip.MustParseAddr("172.18.0.100"), netip.MustParseAddr("2001:db8::1")}
	})
	w.SetNode(lists)
	if have, want := w.NodeAddrs(w.Node("n3")), lists.HostAddrs[:8]; !slices.Equal(have, want) {
		t.Errorf("n3's addresses are %s, want %s", have, want)
	}
	w.SetNode(compiletest.Node(2))
	if have := w.Node("n2"); !reflect.DeepEqual(have, compiletest.Node(2)) {
		t.Errorf("n2 lost something: %+v", have)
	}
	primary := compiletest.Node(2).Primary[0].Addr()
	if have := w.NodeAddrs(w.Node("n3")); slices.Contains(have, primary) {
		t.Errorf("n3's addresses are %s, with n2's", have)
	}
	if have, want := w.NodeAddrs(w.Node("n1")), compiletest.Node(1).HostAddrs; !slices.Equal(have, want) {
		t.Errorf("this node's addresses are %s, want %s", have, want)
	}
}

// TestRecordIsWhatOthersReach: pods of other nodes reach a recorded node at what is recorded, whatever it and its
// kubelet say, or do not; a node of which nothing is recorded, at no address that no host has.
func TestRecordIsWhatOthersReach(t *testing.T) {
	outside := func(n *world.Node) {
		n.Primary = []netip.Prefix{netip.MustParsePrefix("8.8.8.8/32"), netip.MustParsePrefix("2001:db8::1/128")}
		n.HostAddrs = n.InternalIPs
	}
	kubelets := func(n *world.Node) {
		n.Primary, n.InternalIPs = nil, []netip.Addr{netip.MustParseAddr("8.8.8.8")}
	}
	noHosts := func(n *world.Node) {
		n.Primary = []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32"), netip.MustParsePrefix("ff02::1/16")}
		n.InternalIPs = []netip.Addr{netip.MustParseAddr("172.18.0.4")}
	}
	for _, say := range []func(*world.Node){outside, kubelets, noHosts} {
		w := world.New("n1", compiletest.Config(world.SharedGateway))
		n := compiletest.Recorded(3)
		say(n)
		w.SetNode(n)
		if have := w.NodeAddrs(w.Node("n3")); !slices.Equal(have, n.Record.Addrs) {
			t.Errorf("n3 says %s and %s, and is known by %s; recorded is %s", n.Primary, n.InternalIPs, have,
				n.Record.Addrs)
		}
	}
	w := world.New("n1", compiletest.Config(world.SharedGateway))
	n := compiletest.Node(3)
	noHosts(n)
	w.SetNode(n)
	if have := w.NodeAddrs(w.Node("n3")); len(have) != 0 {
		t.Errorf("n3 is known by %s", have)
	}
}

// TestWithoutAgent: a node that has told of no primary network is known by one address a family that its kubelet tells,
// and not by one that no node can have.
func TestWithoutAgent(t *testing.T) {
	w := world.New("n1", compiletest.Config(world.SharedGateway))
	told := []netip.Addr{netip.MustParseAddr("10.244.1.5"), netip.MustParseAddr("172.18.0.9"),
		netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("fc00:f853:ccd:e793::9")}
	node := func(ips ...netip.Addr) *world.Node { return &world.Node{Name: "n9", InternalIPs: ips, HostAddrs: ips} }
	w.SetNode(node(told...))
	if have := w.NodeAddrs(w.Node("n9")); !slices.Equal(have, []netip.Addr{told[1], told[3]}) {
		t.Errorf("have %s", have)
	}
	touched := w.ChangesOf(func() { w.SetNode(node(told[2])) })
	if !slices.Contains(touched, world.Entry{Kind: world.KindNode, Key: "n9"}) {
		t.Errorf("its kubelet tells another address: %v", touched)
	}
}

// TestFurtherAddresses checks which of a node's further addresses other nodes reach it at: those in a network that
// another node has, or that people confirm, and none that is an egress IP, this host's gateway or another node's.
func TestFurtherAddresses(t *testing.T) {
	w := world.New("n1", compiletest.Config(world.SharedGateway))
	w.SetHost(compiletest.Host("n1"))
	w.SetNode(compiletest.Recorded(1))
	vips := []netip.Addr{netip.MustParseAddr("172.18.0.200"), netip.MustParseAddr("fc00:f853:ccd:e793::200")}
	egressIP := compiletest.EgressAddr(0)[0]
	n3, own := compiletest.Recorded(3), compiletest.Node(3).HostAddrs
	for _, a := range []string{"172.18.0.1", "172.18.0.2", "172.18.0.255", "8.8.8.8", "2001:db8::1", "10.9.0.1",
		"192.168.5.7", egressIP.String()} {
		n3.HostAddrs = append(n3.HostAddrs, netip.MustParseAddr(a))
	}
	n3.HostAddrs = append(n3.HostAddrs, vips...)
	n3.CIDRs = append(n3.CIDRs, netip.MustParsePrefix("8.8.8.8/24"), netip.MustParsePrefix("192.168.5.7/24"))
	n3.Confirmed = []netip.Prefix{netip.MustParsePrefix("192.168.5.0/24")}
	e := compiletest.EgressIP(0, "", egressIP)
	e.Items = []world.Assignment{{Node: "n1", IP: egressIP}}
	w.SetEgressIP(e)
	expect := func(when string, change func(), want ...netip.Addr) {
		t.Helper()
		changed := w.ChangesOf(change)
		if have := w.NodeAddrs(w.Node("n3")); !slices.Equal(have, want) {
			t.Errorf("%s: n3's addresses are %s, want %s", when, have, want)
		}
		if when != "n3 alone" && len(changed) > 0 && !slices.ContainsFunc(changed, func(t world.Entry) bool {
			return t.Kind == world.KindNodeNetwork || t.Kind == world.KindNetworkLengths
		}) {
			t.Errorf("%s: changed %v", when, changed)
		}
	}
	confirmed := netip.MustParseAddr("192.168.5.7")
	expect("n3 alone", func() { w.SetNode(n3) }, append(append(slices.Clone(own), confirmed), vips...)...)
	expect("n1 is gone", func() { w.DelNode("n1") }, append(slices.Clone(own[:2]), confirmed)...)
	n2 := compiletest.Recorded(2)
	n2.HostAddrs = append(n2.HostAddrs, vips...)
	expect("n2 joins, and has the virtual addresses, too", func() { w.SetNode(n2) },
		append(append(append(slices.Clone(own), netip.MustParseAddr("172.18.0.2")), confirmed), vips...)...)
	if have := w.NodeAddrs(w.Node("n2")); !slices.Equal(have[len(have)-2:], vips) {
		t.Errorf("n2's addresses are %s", have)
	}
}

// TestAlikeOnAllHosts: an address that nodes have alike, as that of docker0, is believed of none of them, as long as
// none has another one in its network. How many nodes there are decides nothing, and neither does who came first.
func TestAlikeOnAllHosts(t *testing.T) {
	w := world.New("n1", compiletest.Config(world.SharedGateway))
	alike := netip.MustParseAddr("172.17.0.1")
	bridged := func(i int, a netip.Addr) *world.Node {
		n := compiletest.Recorded(i)
		n.HostAddrs, n.CIDRs = append(n.HostAddrs, a), append(n.CIDRs, netip.PrefixFrom(a, 16))
		return n
	}
	w.SetNode(compiletest.Recorded(1))
	for i := 2; i <= 5; i++ {
		w.SetNode(bridged(i, alike))
	}
	touches := func(touched []world.Entry) bool {
		return slices.Contains(touched, world.Entry{Kind: world.KindNodeNetwork, Key: "172.17.0.0/16"})
	}
	for _, one := range []struct {
		when string
		set  *world.Node
		want bool
	}{{"all alike", bridged(5, alike), false}, {"one has another", bridged(5, alike.Next()), true},
		{"all alike again", bridged(5, alike), false}} {
		changed := !slices.Equal(one.set.HostAddrs, w.Node("n5").HostAddrs)
		if touched := w.ChangesOf(func() { w.SetNode(one.set) }); changed != touches(touched) {
			t.Errorf("%s: touched %v", one.when, touched)
		}
		if have := slices.Contains(w.NodeAddrs(w.Node("n2")), alike); have != one.want {
			t.Errorf("%s: believed %t, want %t", one.when, have, one.want)
		}
	}
}

// TestOutOfRange: ids, subnets and addresses that no node can have are nobody's.
func TestOutOfRange(t *testing.T) {
	w := world.New("n1", compiletest.Config(world.SharedGateway))
	n := compiletest.Node(3)
	n.ID = 1
	n.Subnets = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.244.3.0/25"),
		netip.MustParsePrefix("10.244.3.7/24"), netip.MustParsePrefix("10.96.0.0/24")}
	n.Primary = []netip.Prefix{netip.MustParsePrefix("10.244.1.5/24")}
	n.HostAddrs = []netip.Addr{netip.MustParseAddr("10.244.1.5"), netip.MustParseAddr("10.96.0.1"),
		netip.MustParseAddr("100.64.0.1"), netip.MustParseAddr("100.88.0.2"), netip.MustParseAddr("100.96.0.2")}
	w.SetNode(n)
	if have := w.Node("n3"); have.ID != 0 || len(have.Subnets)+len(have.Primary)+len(have.HostAddrs) != 0 ||
		len(have.Problems) != 6 {
		t.Errorf("have %+v", have)
	}
}
