package world_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// overridden is a world in which an EgressService in force and an EgressIP are for the same pod. The EgressIP has no
// node, and asks for IPv4 alone.
func overridden(t *testing.T, edit func(*world.EgressIP)) (*world.World, *world.Pod) {
	t.Helper()
	w := compiletest.Small("n1", world.SharedGateway)
	p := compiletest.Pod(0, "n1")
	w.SetNamespace(&world.Namespace{Name: p.Namespace})
	w.SetPod(p)
	s := compiletest.EgressService(0)
	s.SourceIPBy, s.Host = world.SourceNetwork, world.HostAll
	w.SetEgressService(s)
	w.SetService(compiletest.LoadBalancer(0, p))
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(50)[:1]...)
	e.Items, e.InForce = nil, [2]bool{}
	edit(e)
	w.SetEgressIP(e)
	return w, p
}

// claimant says who has the first claim to a pod's packets: the kind, or "" if nobody.
func claimant(w *world.World, p *world.Pod, f world.Family) string {
	for _, c := range w.Claims(p, ref.DefaultNetwork, f) {
		return c.By.Kind
	}
	return ""
}

// TestNeverOverridden: where an EgressIP forbids it, no EgressService has a claim to packets of the pods that it
// selects in the families of its addresses, whether it has a node, is to have packets dropped, or neither. Which stands
// by for it is said.
func TestNeverOverridden(t *testing.T) {
	for name, x := range map[string]struct {
		edit func(*world.EgressIP)
		want [2]string
	}{
		"may be overridden": {func(e *world.EgressIP) { e.DropWhenUnassigned = true },
			[2]string{ref.EgressService, ref.EgressService}},
		"never, without a node": {func(e *world.EgressIP) { e.NeverOverridden = true },
			[2]string{"", ref.EgressService}},
		"never, and drops": {func(e *world.EgressIP) { e.NeverOverridden, e.DropWhenUnassigned = true, true },
			[2]string{ref.EgressIP, ref.EgressService}},
		"never, with unknown destinations": {func(e *world.EgressIP) {
			e.NeverOverridden, e.TrafficUnknown, e.Traffic = true, true, labels.Nothing()
		}, [2]string{"", ref.EgressService}},
		"never, without destinations": {func(e *world.EgressIP) {
			e.NeverOverridden, e.Traffic = true, labels.Nothing()
		}, [2]string{ref.EgressService, ref.EgressService}},
	} {
		w, p := overridden(t, x.edit)
		for _, f := range [...]world.Family{world.V4, world.V6} {
			if have := claimant(w, p, f); have != x.want[f] {
				t.Errorf("%s: IP%s is of %q, want %q", name, f, have, x.want[f])
			}
			standbys := w.Standbys(p, f)
			stands := len(standbys) > 0 && standbys[0].By.Kind == ref.EgressService && len(standbys[0].For) == 1 &&
				standbys[0].For[0].By.Kind == ref.EgressIP
			if want := x.want[f] != ref.EgressService; stands != want {
				t.Errorf("%s: IP%s: standbys %v", name, f, standbys)
			}
		}
	}
}

// TestNeverOverriddenIsTold: the pods that an EgressIP selects are touched when it begins to forbid, and when it ends.
func TestNeverOverriddenIsTold(t *testing.T) {
	w, p := overridden(t, func(*world.EgressIP) {})
	for _, never := range []bool{true, false} {
		e := *w.EgressIP("e0")
		e.NeverOverridden = never
		told := false
		for _, touched := range w.ChangesOf(func() { w.SetEgressIP(&e) }) {
			told = told || touched == world.Entry{Kind: world.KindPod, Key: p.Key()}
		}
		want := map[bool]string{true: "", false: ref.EgressService}[never]
		if !told || claimant(w, p, world.V4) != want {
			t.Errorf("never %t: told %t, IPv4 is of %q", never, told, claimant(w, p, world.V4))
		}
	}
}

// TestMayName: a namespace that lists tables may name these, as they are written, and any other all.
func TestMayName(t *testing.T) {
	lists := func(networks ...string) *world.Namespace {
		return &world.Namespace{LimitsNetworks: true, Networks: networks}
	}
	for name, x := range map[string]struct {
		namespace *world.Namespace
		may       [3]bool // blue, 1001, none
	}{
		"no list":      {&world.Namespace{}, [3]bool{true, true, true}},
		"empty":        {lists(""), [3]bool{false, false, true}},
		"one":          {lists("blue"), [3]bool{true, false, true}},
		"two":          {lists("1001", "blue"), [3]bool{true, true, true}},
		"all":          {lists("*"), [3]bool{true, true, true}},
		"unknown":      {nil, [3]bool{true, true, true}},
		"another form": {lists("01001", "Blue"), [3]bool{false, false, true}},
	} {
		w := compiletest.Small("n1", world.SharedGateway)
		s := compiletest.EgressService(0)
		if x.namespace != nil {
			x.namespace.Name = s.Namespace
			w.SetNamespace(x.namespace)
		} else {
			w.DelNamespace(s.Namespace)
		}
		for i, table := range []string{"blue", "1001", ""} {
			if w.MayName(s.Namespace, table) != x.may[i] {
				t.Errorf("%s: may name %q: %t", name, table, !x.may[i])
			}
		}
	}
}
