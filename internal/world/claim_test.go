package world_test

import (
	"net/netip"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestClaims: of EgressIPs that select a pod the oldest that binds has the claim to its packets; if none does, the
// oldest that has a node.
func TestClaims(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.33")
	node := []world.Assignment{{Node: "n1", IP: ip}}
	inForce := [2]bool{world.V4: true}
	type object struct {
		name  string
		age   int
		items []world.Assignment
		force [2]bool
		drops bool
	}
	for name, x := range map[string]struct {
		objects []object
		want    string
	}{
		"nobody has a node": {[]object{{name: "a"}}, ""},
		"the older": {[]object{{"a", 1, node, inForce, false}, {"b", 2, node, inForce, false}},
			"b"},
		"of one age, the first by name": {[]object{{"b", 1, node, inForce, false}, {"a", 1, node, inForce, false}},
			"a"},
		"the older has no node": {[]object{{"a", 1, node, inForce, false}, {"b", 2, nil, [2]bool{}, false}},
			"a"},
		"the older is not in force yet": {[]object{{"a", 1, node, inForce, false}, {"b", 2, node, [2]bool{}, false}},
			"a"},
		"neither is": {[]object{{"a", 1, node, [2]bool{}, false}, {"b", 2, node, [2]bool{},
			false}}, "b"},
		"the older drops without a node": {[]object{{"a", 1, node, inForce, false}, {"b", 2, nil, [2]bool{}, true}},
			"b"},
		"the older is in force elsewhere": {[]object{{"a", 1, node, inForce, false},
			{"b", 2, nil, [2]bool{world.V6: true}, false}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world.New("", &world.Config{})
			w.SetNamespace(&world.Namespace{Name: "ns"})
			for _, o := range x.objects {
				w.SetEgressIP(&world.EgressIP{Name: o.name, UID: o.name, Created: time.Unix(int64(1000-o.age), 0),
					IPs: []netip.Addr{ip}, Placement: world.Placement{Items: o.items, InForce: o.force},
					DropWhenUnassigned: o.drops, Namespaces: labels.Everything(),
					Pods: labels.Everything()})
			}
			have := ""
			for _, c := range w.Claims(&world.Pod{Namespace: "ns", Name: "p"}, ref.DefaultNetwork, world.V4) {
				have += c.By.Name
			}
			if have != x.want {
				t.Errorf("claimed by %q, want %q", have, x.want)
			}
		})
	}
}

// TestStandbysDoNotFollowAddresses: for which EgressIPs another one stands by does not change with the node that holds
// an address.
func TestStandbysDoNotFollowAddresses(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.33")
	w := world.New("", &world.Config{})
	w.SetNamespace(&world.Namespace{Name: "ns"})
	inForce := func(name string, age int64, node string) *world.EgressIP {
		return &world.EgressIP{Name: name, UID: name, Created: time.Unix(1000-age, 0), IPs: []netip.Addr{ip},
			Placement: world.Placement{Items: []world.Assignment{{Node: node, IP: ip}},
				InForce: [2]bool{world.V4: true}},
			Namespaces: labels.Everything(), Pods: labels.Everything()}
	}
	w.SetEgressIP(inForce("older", 2, "n1"))
	w.SetEgressIP(inForce("younger", 1, "n1"))
	told := false
	reader := world.NewReader(func() { told = true })
	pod := &world.Pod{Namespace: "ns", Name: "p"}
	w.SetPod(pod)
	by := reader.Reading(w).Standbys(pod, world.V4)
	if len(by) != 1 || by[0].By.Name != "younger" || len(by[0].For) != 1 {
		t.Fatalf("stand by: %v", by)
	}
	if w.SetEgressIP(inForce("older", 2, "n2")); told {
		t.Error("a pod's Reader is told of another node")
	}
	if w.SetEgressIP(inForce("older", 0, "n2")); !told {
		t.Error("a pod's Reader is not told of another order")
	}
}
