package zone_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/world"
)

// networked is a cluster of two nodes, with two networks of one range, and what is decided about it in time.
type networked struct {
	*testing.T
	*term
	now time.Time
}

func tellNetworked(t *testing.T) *networked {
	x := &networked{t, termOf(newWorld("10.244.0.0/16/24")), time.Unix(1000, 0)}
	x.w.SetNode(node("a", 0))
	x.w.SetNode(node("b", 0))
	for i, name := range []string{"blue", "red"} {
		x.w.SetNamespace(&world.Namespace{Name: "of-" + name, OwnNetwork: true})
		x.network(i+1, name, "10.9.0.0/23")
	}
	return x
}

func (x *networked) network(id int, name string, cidrs ...string) {
	n := &world.Network{Name: name, ID: id, Namespaces: []string{"of-" + name}}
	for _, c := range cidrs {
		n.Subnets = append(n.Subnets, world.ClusterSubnet{CIDR: netip.MustParsePrefix(c), NodeLen: 24})
	}
	x.w.SetNetwork(n)
}

// pod has a pod be on a node.
func (x *networked) pod(name, namespace, node string) *world.Pod {
	p := &world.Pod{Namespace: namespace, Name: name, UID: name, Node: node}
	x.w.SetPod(p)
	return p
}

// have has all decided, and says which parts the nodes get.
func (x *networked) have(want ...string) (again time.Time) {
	x.Helper()
	desired, again := x.d.Decide(decide.View{World: x.w, Now: x.now})
	for _, one := range desired {
		x.w.Decide(one.Kind, one.Key, one.Decision)
	}
	var have []string
	for _, name := range x.w.Nodes() {
		for network, part := range x.w.Node(name).Further {
			have = append(have, fmt.Sprint(name, " ", network, " ", part.Subnets))
		}
	}
	if slices.Sort(have); !slices.Equal(have, want) {
		x.Errorf("the nodes have %q, want %q", have, want)
	}
	return again
}

// TestPartsFollowPods: a node has a part of a network as soon as a pod of it is there, and loses it a while after the
// last one. Networks may have the same subnets.
func TestPartsFollowPods(t *testing.T) {
	x := tellNetworked(t)
	x.have()
	x.pod("p", "of-blue", "a")
	x.pod("q", "of-red", "a")
	x.pod("waits", "of-red", "")
	x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]")
	x.pod("r", "of-blue", "b")
	x.pod("other", "default", "b")
	x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]")
	x.w.DelPod("of-blue/p")
	again := x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]")
	if wait := again.Sub(x.now); wait < time.Minute || wait > time.Hour {
		t.Fatalf("the part of a pod that is gone is released %s later", wait)
	}
	x.now = again.Add(-time.Second)
	if again != x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]") {
		t.Error("it is released at another time now")
	}
	x.now = again
	if again := x.have("a red [10.9.0.0/24]", "b blue [10.9.1.0/24]"); !again.IsZero() {
		t.Errorf("something else is due at %v", again)
	}
	x.pod("s", "of-blue", "a")
	x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]")
}

// TestPartsFollowEgressIPs: a node has a part of a network, too, while it hosts an EgressIP that selects pods of it.
func TestPartsFollowEgressIPs(t *testing.T) {
	x := tellNetworked(t)
	x.pod("p", "of-blue", "a")
	hostedBy := func(node string, of ...string) {
		e := &world.EgressIP{Name: "e", UID: "e", Pods: labels.Everything()}
		e.Namespaces = selectorOf("of", of...)
		e.Items = []world.Assignment{{Node: node, IP: netip.MustParseAddr("10.1.0.1")}}
		x.w.SetEgressIP(e)
	}
	for _, ns := range []string{"of-blue", "of-red"} {
		x.w.SetNamespace(&world.Namespace{Name: ns, OwnNetwork: true, Labels: map[string]string{"of": ns}})
	}
	hostedBy("b", "of-blue", "of-red")
	x.have("a blue [10.9.0.0/24]", "b blue [10.9.1.0/24]")
	x.pod("q", "of-red", "a")
	x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]", "b red [10.9.1.0/24]")
	hostedBy("b", "of-blue") // red's pod is selected no longer
	again := x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]", "b red [10.9.1.0/24]")
	x.now = again
	x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]")
	hostedBy("a", "of-blue")
	again = x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]")
	x.now = again
	x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]")
	hostedBy("b", "of-blue")
	x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]")
	x.d = zone.NewAllocator()
	x.w.FollowChanges(x.d.NoteChanged)
	if again := x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]"); !again.IsZero() {
		t.Error("the next leader takes a part from a host")
	}
	x.w.DelEgressIP("e")
	x.now = x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]", "b blue [10.9.1.0/24]")
	x.have("a blue [10.9.0.0/24]", "a red [10.9.0.0/24]")
}

// TestPartsFollowServices: all nodes have a part of a network while a Service there is served at each of them, a node
// that joins, too. The Service may be there before its namespace.
func TestPartsFollowServices(t *testing.T) {
	x := tellNetworked(t)
	x.network(1, "blue", "10.9.0.0/22")
	service := func(change func(*world.Service)) {
		s := &world.Service{Namespace: "of-blue", Name: "s", UID: "s", Ports: []world.ServicePort{{NodePort: 30000}}}
		change(s)
		x.w.SetService(s)
	}
	everywhere := func(*world.Service) {}
	inside := func(s *world.Service) { s.Ports[0].NodePort = 0 }
	x.w.SetService(&world.Service{Namespace: "default", Name: "s", UID: "s", Ports: []world.ServicePort{{NodePort: 3}}})
	service(inside)
	x.have()
	service(everywhere)
	both := []string{"a blue [10.9.0.0/24]", "b blue [10.9.1.0/24]"}
	x.have(both...)
	for _, change := range []func(*world.Service){inside, func(s *world.Service) { s.ExternalLocal = true }} {
		service(change)
		x.now = x.have(both...)
		x.have()
		service(everywhere)
		x.have(both...)
	}
	x.w.SetNode(node("c", 0))
	x.have(append(both, "c blue [10.9.2.0/24]")...)
	x.w.DelNamespace("of-blue")
	x.now = x.have(append(both, "c blue [10.9.2.0/24]")...)
	x.have()
	x.w.SetNamespace(&world.Namespace{Name: "of-blue", OwnNetwork: true})
	x.have(append(both, "c blue [10.9.2.0/24]")...)
	x.d = zone.NewAllocator()
	x.w.FollowChanges(x.d.NoteChanged)
	if again := x.have(append(both, "c blue [10.9.2.0/24]")...); !again.IsZero() {
		t.Error("the next leader takes a part from a node that serves")
	}
	for _, text := range []string{"balancer", "external"} {
		ips := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
		service(func(s *world.Service) {
			if inside(s); text == "balancer" {
				s.LoadBalancerIPs = ips
			} else {
				s.ExternalIPs = ips
			}
		})
		if again := x.have(append(both, "c blue [10.9.2.0/24]")...); !again.IsZero() {
			t.Errorf("with the address of its %s, parts are to be released", text)
		}
	}
	x.w.DelService("of-blue/s")
	x.now = x.have(append(both, "c blue [10.9.2.0/24]")...)
	x.have()
}

// selectorOf selects objects that have one of the values of a label.
func selectorOf(key string, values ...string) labels.Selector {
	r, err := labels.NewRequirement(key, selection.In, values)
	if err != nil {
		panic(err)
	}
	return labels.NewSelector().Add(*r)
}

// TestPodComesBack: a part is not released under a pod that comes meanwhile.
func TestPodComesBack(t *testing.T) {
	x := tellNetworked(t)
	x.pod("p", "of-blue", "a")
	x.have("a blue [10.9.0.0/24]")
	x.w.DelPod("of-blue/p")
	again := x.have("a blue [10.9.0.0/24]")
	x.pod("q", "of-blue", "a")
	x.have("a blue [10.9.0.0/24]")
	x.now = again.Add(time.Hour)
	x.have("a blue [10.9.0.0/24]")
}

// TestPartsAreKept: the next leader leaves each node what it has, and gives nobody else the same.
func TestPartsAreKept(t *testing.T) {
	x := tellNetworked(t)
	x.pod("p", "of-blue", "b")
	x.have("b blue [10.9.0.0/24]")
	x.d = zone.NewAllocator()
	x.w.FollowChanges(x.d.NoteChanged)
	x.pod("q", "of-blue", "a")
	x.have("a blue [10.9.1.0/24]", "b blue [10.9.0.0/24]")
}

// TestNetworkComesLater: pods are there before their network, and before what is known of their namespace.
func TestNetworkComesLater(t *testing.T) {
	x := tellNetworked(t)
	x.pod("p", "of-green", "a")
	x.have()
	x.w.SetNamespace(&world.Namespace{Name: "of-green", OwnNetwork: true})
	x.have()
	x.network(3, "green", "10.7.0.0/16")
	x.have("a green [10.7.0.0/24]")
	x.w.DelNetwork("green")
	x.have()
	if said := x.w.Said("a").Further; len(said) > 0 {
		t.Errorf("the node says %v of networks that are gone", said)
	}
}

// TestUnknownParts: a leader does not take what a Node says of a network that has no number yet, and gives nobody else
// the same.
func TestUnknownParts(t *testing.T) {
	x := tellNetworked(t)
	n := node("a", 0)
	n.Further = map[string]world.NodeNetwork{"green": {Subnets: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/24")}}}
	x.w.SetNode(n)
	x.w.SetNamespace(&world.Namespace{Name: "of-green", OwnNetwork: true})
	x.pod("p", "of-green", "a")
	x.pod("q", "of-green", "b")
	x.have()
	if said := x.w.Said("a").Further; len(said) != 1 {
		t.Errorf("the node says %v", said)
	}
	x.network(3, "green", "10.7.0.0/16")
	x.have("a green [10.7.0.0/24]", "b green [10.7.1.0/24]")
}

// TestWhoNeedsNoPart: pods of the host's network, and those that have ended.
func TestWhoNeedsNoPart(t *testing.T) {
	x := tellNetworked(t)
	p := *x.pod("p", "of-blue", "a")
	x.have("a blue [10.9.0.0/24]")
	x = tellNetworked(t)
	ended, host := p, p
	ended.Completed, host.HostNetwork, host.Name = true, true, "q"
	x.w.SetPod(&ended)
	x.w.SetPod(&host)
	x.have()
}

// TestNoPartIsFree: a network without a free subnet is a problem of the node that lacks it, and of nothing else.
func TestNoPartIsFree(t *testing.T) {
	x := tellNetworked(t)
	for _, name := range []string{"a", "b", "c"} {
		x.w.SetNode(node(name, 0))
		x.pod("p-"+name, "of-blue", name)
	}
	x.pod("q", "of-red", "c")
	x.have("a blue [10.9.0.0/24]", "b blue [10.9.1.0/24]", "c red [10.9.0.0/24]")
	if text := x.w.Said("c").AllocationProblem; !strings.Contains(text, "no IPv4 subnet of network blue is free") {
		t.Errorf("c says %q", text)
	}
	x.network(1, "blue", "10.9.0.0/23", "10.10.0.0/16")
	x.have("a blue [10.9.0.0/24]", "b blue [10.9.1.0/24]", "c blue [10.10.0.0/24]", "c red [10.9.0.0/24]")
	if text := x.w.Said("c").AllocationProblem; text != "" {
		t.Errorf("c says %q", text)
	}
}
