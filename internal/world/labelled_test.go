package world_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestManyLabelsAsked: selectors of many labels, other ones each time, select whom they select, and what is kept for
// them does not grow.
func TestManyLabelsAsked(t *testing.T) {
	w := world.New("n1", compiletest.Config(world.SharedGateway))
	all := labels.Set{}
	for i := range 1000 {
		all[fmt.Sprint("k", i)] = "v"
	}
	pod := func(name string, l labels.Set) {
		w.SetPod(&world.Pod{Namespace: "a", Name: name, UID: name, Labels: l, Node: "n1",
			IPs: []netip.Addr{compiletest.V4(10, 244, 1, 10+len(name))}})
	}
	pod("all", all)
	pod("some", labels.Set{"k1": "v"})
	for round := range 20 {
		asked := labels.Set{}
		for i := range 50 {
			key := fmt.Sprint("k", 50*round+i)
			asked[key] = all[key]
		}
		w.SetService(&world.Service{Namespace: "a", Name: "s", Pods: labels.SelectorFromSet(asked)})
		one := &world.EgressService{Namespace: "a", Name: "s", UID: fmt.Sprint(round)}
		touched := w.ChangesOf(func() { w.SetEgressService(one) })
		is := func(name string) bool {
			return slices.Contains(touched, world.Entry{Kind: world.KindPod, Key: "a/" + name})
		}
		if !is("all") || is("some") {
			t.Fatalf("round %d: touched %v", round, touched)
		}
		w.DelEgressService("a/s")
	}
	if n := w.Indexed("a"); n == 0 || n > 256 {
		t.Errorf("%d labels are indexed", n)
	}
}
