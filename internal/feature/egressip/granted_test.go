package egressip_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// claims are the ways in which somebody else says that an address is theirs.
func claims(ip netip.Addr) map[string]func(*world.World) {
	return map[string]func(*world.World){
		"host-cidrs": func(w *world.World) {
			n := node("n3", 4, "172.18.0.4/24", "fd00:18::4/64")
			n.Labels, n.HostAddrs = nil, []netip.Addr{addr("172.18.0.4"), ip}
			w.SetNode(n)
		},
		"holding": func(w *world.World) { hold(w, "n3", map[string][]netip.Addr{"shop/web": {ip}}) },
		"Service": func(w *world.World) {
			w.SetService(&world.Service{Namespace: "a", Name: "b", LoadBalancerIPs: []netip.Addr{ip}})
		},
	}
}

// assignable makes n1 the only node that may host, or no node at all.
func assignable(w *world.World, any bool) {
	for _, n := range []*world.Node{node("n1", 2, "172.18.0.2/24", "fd00:18::2/64"),
		node("n2", 3, "172.18.0.3/24", "fd00:18::3/64"), node("n3", 4, "172.18.0.4/24", "fd00:18::4/64")} {
		if !any || n.Name != "n1" {
			n.Labels = nil
		}
		w.SetNode(n)
	}
}

// TestGrantedIsKept: an address that once had a node is not taken in the time in which it has none, and an object that
// never had it gets nothing by being first.
func TestGrantedIsKept(t *testing.T) {
	ip := addr("172.18.0.33")
	for name, say := range claims(ip) {
		w := newWorld()
		assignable(w, true)
		w.SetEgressIP(object("e", 0, ip.String()))
		settle(w)
		assignable(w, false)
		if d := settle(w)["e"]; len(d.Items) != 0 || !slices.Contains(d.Granted, ip) {
			t.Fatalf("%s: without a node: %s, granted %v", name, items(d), d.Granted)
		}
		say(w)
		settle(w)
		n1 := node("n1", 2, "172.18.0.2/24", "fd00:18::2/64")
		w.SetNode(n1)
		if d := settle(w)["e"]; items(d) != "n1=172.18.0.33" {
			t.Errorf("%s: with a node again: %s, %+v", name, items(d), conditionOf(d, egressip.ConditionAssigned))
		}
		e := *object("e", 0, "172.18.0.44")
		e.Placement = w.EgressIP("e").Placement
		w.SetEgressIP(&e)
		if d := settle(w)["e"]; slices.Contains(d.Granted, ip) || !slices.Contains(d.Granted, addr("172.18.0.44")) {
			t.Errorf("%s: out of the spec: granted %v", name, d.Granted)
		}
		w.DelEgressIP("e")
		w.SetEgressIP(object("late", 0, ip.String()))
		if d := settle(w)["late"]; len(d.Items)+len(d.Granted) != 0 {
			t.Errorf("%s: one that never had it: %s, granted %v", name, items(d), d.Granted)
		}
	}
}

// TestGrantedEndsWithARefusal: an address that is the cluster's own, or an older object's, is granted to nobody else.
func TestGrantedEndsWithARefusal(t *testing.T) {
	ip := addr("172.18.0.33")
	w := newWorld()
	assignable(w, true)
	w.SetEgressIP(object("e", 0, ip.String()))
	settle(w)
	assignable(w, false)
	settle(w)
	w.SetEgressIP(object("older", 9, ip.String()))
	d := settle(w)
	if got := d["e"].Granted; len(got) != 0 {
		t.Errorf("it is an older object's: granted %v", got)
	}
	if c := conditionOf(d["e"], egressip.ConditionAssigned); !strings.Contains(c.Message, "older") {
		t.Errorf("the reason is not told: %+v", c)
	}
}

// TestAPIServersTakeTheirAddress: an address that an EgressIP has had is an API server's as soon as that is among the
// endpoints, and the EgressIP's again when it is not. Nothing else about the Service changes.
func TestAPIServersTakeTheirAddress(t *testing.T) {
	for _, ip := range []string{"172.18.0.250", "fd00:18::250"} {
		x, now := newTerm(false), time.Unix(100_000, 0)
		for i := 1; i <= 3; i++ {
			n := node(fmt.Sprint("n", i), i+1, fmt.Sprintf("172.18.0.%d/24", i+1), fmt.Sprintf("fd00:18::%d/64", i+1))
			x.change(func(w *world.World) { w.SetNode(n) }, now)
		}
		x.change(func(w *world.World) { w.SetEgressIP(object("e", 0, ip)) }, now)
		endpoints := func(ips ...string) world.Condition {
			x.change(func(w *world.World) { w.SetService(apiServers(ips...)) }, now)
			for range 3 { // the last finds nothing new: only the next change calls for a decision
				x.round(now)
			}
			return conditionOf(x.assigner.Last()["e"], egressip.ConditionAssigned)
		}
		if c := endpoints(); c.Status != "True" {
			t.Fatalf("%s is free: %+v", ip, c)
		}
		c := endpoints("172.18.0.249", ip)
		if d := x.assigner.Last()["e"]; len(d.Items)+len(d.Granted) != 0 || c.Reason != egressip.ReasonConflict ||
			!strings.Contains(c.Message, ip+" is the API server's") {
			t.Errorf("an API server has %s: %s, granted %v, %+v", ip, items(d), d.Granted, c)
		}
		if c := endpoints("172.18.0.249"); c.Status != "True" {
			t.Errorf("%s is free again: %+v", ip, c)
		}
	}
}
