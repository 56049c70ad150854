package egressip_test

import (
	"fmt"
	"math/rand"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// objects are what a cluster consists of, to be put into a world in any order.
type objects struct {
	nodes     []*world.Node
	egressIPs []*world.EgressIP
	holdings  []*world.Holding
}

func (o objects) world(seed int64) *world.World {
	w := newWorld()
	var puts []func()
	for _, n := range o.nodes {
		puts = append(puts, func() { w.SetNode(n) })
	}
	for _, e := range o.egressIPs {
		puts = append(puts, func() { w.SetEgressIP(e) })
	}
	for _, h := range o.holdings {
		puts = append(puts, func() { w.SetHolding(h) })
	}
	rand.New(rand.NewSource(seed)).Shuffle(len(puts), func(i, j int) { puts[i], puts[j] = puts[j], puts[i] })
	for _, put := range puts {
		put()
	}
	return w
}

func drawNode(t *rapid.T, i int) *world.Node {
	n := node(fmt.Sprintf("n%d", i), i+2,
		fmt.Sprintf("172.18.%d.%d/%d", rapid.IntRange(0, 1).Draw(t, "third"), 200+i,
			rapid.SampledFrom([]int{16, 24}).Draw(t, "length")),
		fmt.Sprintf("fd00:18::%d/64", 200+i))
	if rapid.IntRange(0, 2).Draw(t, "secondary link") == 0 {
		n.CIDRs = append(n.CIDRs, netip.MustParsePrefix(fmt.Sprintf("172.20.0.%d/24", 2+i)))
	}
	n.Ready = rapid.IntRange(0, 4).Draw(t, "ready") > 0
	n.Deleting = rapid.IntRange(0, 9).Draw(t, "deleting") == 0
	n.Labels["zone"] = drawZone(t)
	if rapid.IntRange(0, 4).Draw(t, "unlabelled") == 0 {
		delete(n.Labels, world.AssignableLabel)
	}
	return n
}

var someAddresses = []string{"172.18.0.31", "172.18.0.32", "172.18.0.33", "172.18.1.31", "172.18.1.32", "172.18.5.31",
	"172.20.0.31", "172.20.0.32", "fd00:18::31", "fd00:18::32", "fd00:18::33", "172.18.0.201", "10.244.0.3"}

func drawEgressIP(t *rapid.T, i int) *world.EgressIP {
	ips := rapid.SliceOfNDistinct(rapid.SampledFrom(someAddresses), 1, 4, rapid.ID[string]).Draw(t, "ips")
	e := object(fmt.Sprintf("e%d", i), rapid.IntRange(0, 3).Draw(t, "age"), ips...)
	e.Nodes = drawSelector(t)
	return e
}

func drawObjects(t *rapid.T) objects {
	var o objects
	for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
		o.nodes = append(o.nodes, drawNode(t, i))
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "egressIPs") {
		e := drawEgressIP(t, i)
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			e.Items = append(e.Items, world.Assignment{
				Node: fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(t, "item")), IP: rapid.SampledFrom(e.IPs).Draw(t,
					"item IP")})
		}
		o.egressIPs = append(o.egressIPs, e)
	}
	for _, n := range o.nodes {
		if rapid.Bool().Draw(t, "holds") && len(o.egressIPs) > 0 {
			e := rapid.SampledFrom(o.egressIPs).Draw(t, "held")
			o.holdings = append(o.holdings, &world.Holding{Node: n.Name, BootID: "boot",
				Holds: map[string][]netip.Addr{e.Name: e.IPs[:1]}})
		}
	}
	return o
}

// rules of the proposal hold for any objects, whatever their status says.
func TestAssignObeysTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawObjects(t).world(1)
		checkRules(t, w, decide(w))
	})
}

// isShared says whether another EgressIP asks for an address of a family that this one asks for: while they may be
// exchanging it, what was in force stays so for ten seconds.
func isShared(w *world.World, name string, f world.Family) bool {
	own := f.OfAddrs(w.EgressIP(name).IPs)
	return slices.ContainsFunc(w.EgressIPs(), func(other string) bool {
		has := func(ip netip.Addr) bool { return slices.Contains(own, ip) }
		return other != name && slices.ContainsFunc(w.EgressIP(other).IPs, has)
	})
}

func checkRules(t *rapid.T, w *world.World, all map[string]egressip.Decision) {
	at := map[netip.Addr]string{}
	for name, d := range all {
		used := map[string]bool{}
		for _, i := range d.Items {
			if other, is := at[i.IP]; is {
				t.Fatalf("%s is assigned for %s and %s", i.IP, other, name)
			}
			at[i.IP] = name
			if key := i.Node + world.FamilyOf(i.IP).String(); used[key] {
				t.Fatalf("%s has two addresses of a family on %s", name, i.Node)
			} else {
				used[key] = true
			}
			n := w.Node(i.Node)
			if n == nil || !n.Ready && !mayGoOn(w, name, i) || n.Deleting || !isEgressNode(n) ||
				!mayBeOn(w.EgressIP(name), n, i) ||
				!slices.ContainsFunc(n.CIDRs, func(p netip.Prefix) bool { return p.Masked().Contains(i.IP) }) {
				t.Fatalf("%s is on %s, which cannot host it", i.IP, i.Node)
			}
			if !slices.Contains(w.EgressIP(name).IPs, i.IP) {
				t.Fatalf("%s is not of %s", i.IP, name)
			}
		}
		for _, f := range []world.Family{world.V4, world.V6} {
			if d.InForce[f] && w.EgressIP(name).Nodes.Problem == "" && !isShared(w, name, f) && !slices.ContainsFunc(
				d.Items, func(i world.Assignment) bool { return world.FamilyOf(i.IP) == f }) {
				t.Fatalf("%s is in force for %v without an item", name, f)
			}
		}
	}
}

// mayGoOn says whether an address may be on a node that is not Ready: it was there before, and so many others are not.
func mayGoOn(w *world.World, name string, i world.Assignment) bool {
	notReady := 0
	for _, n := range w.Nodes() {
		if !w.Node(n).Ready {
			notReady++
		}
	}
	return slices.Contains(w.EgressIP(name).Items, i) && 2*notReady >= len(w.Nodes())
}

func TestAssignIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObjects(t)
		a := decide(o.world(1))
		for seed := range int64(4) {
			if b := decide(o.world(seed)); !reflect.DeepEqual(a, b) {
				t.Fatalf("order matters:\n%+v\n%+v", a, b)
			}
		}
	})
}

// waitsForAnother says whether an address waits for the status of the object that has given it up.
func waitsForAnother(all map[string]egressip.Decision) bool {
	for _, d := range all {
		if strings.Contains(conditionOf(d, "Assigned").Message, " by the status of EgressIP ") {
			return true
		}
	}
	return false
}

// What was decided stands: deciding again changes nothing and says nothing; one more node moves nothing from nodes that
// are Ready.
func TestAssignIsSticky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObjects(t)
		w := o.world(1)
		one := settle(w)
		if waitsForAnother(one) {
			one = settle(w)
		}
		two := settle(w)
		for name, d := range two {
			if !reflect.DeepEqual(d.Items, one[name].Items) || !reflect.DeepEqual(d.Conditions, one[name].Conditions) ||
				len(d.Events) > 0 {
				t.Fatalf("%s: a second look changed\n%+v to\n%+v", name, one[name], d)
			}
		}
		w.SetNode(drawNode(t, 7))
		for name, d := range settle(w) {
			for _, i := range one[name].Items {
				if w.Node(i.Node).Ready && w.Node("n7").HostAddrs[0] != i.IP && !slices.Contains(d.Items, i) {
					t.Fatalf("%s: another node moved %v: %+v", name, i, d.Items)
				}
			}
		}
	})
}

// Losing a node moves what was on it, and nothing else from nodes that are Ready.
func TestAssignMovesOnlyWhatMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawObjects(t)
		w := o.world(1)
		before := settle(w)
		if len(o.nodes) == 0 {
			return
		}
		gone := rapid.SampledFrom(o.nodes).Draw(t, "gone").Name
		w.DelNode(gone)
		after := settle(w)
		checkRules(t, w, after)
		for name, d := range before {
			for _, i := range d.Items {
				if i.Node != gone && w.Node(i.Node).Ready && !slices.Contains(after[name].Items, i) {
					t.Fatalf("%s: loss of %s moved %v", name, gone, i)
				}
			}
		}
	})
}

func TestAssignBalances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		nodes, count := rapid.IntRange(1, 6).Draw(t, "nodes"), map[string]int{}
		for i := range nodes {
			name := fmt.Sprintf("n%d", i)
			w.SetNode(node(name, i+2, fmt.Sprintf("172.18.1.%d/16", i+2)))
			count[name] = 0
		}
		for i := range rapid.IntRange(1, 20).Draw(t, "egressIPs") {
			name := fmt.Sprintf("e%d", i)
			w.SetEgressIP(object(name, 100-i, fmt.Sprintf("172.18.2.%d", i+1)))
			count[settle(w)[name].Items[0].Node]++
		}
		least, most := 1<<30, 0
		for _, n := range count {
			least, most = min(least, n), max(most, n)
		}
		if most-least > 1 {
			t.Fatalf("unbalanced: %v", count)
		}
	})
}
