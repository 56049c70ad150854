package clearance_test

import (
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestSelectionOfAnother: a pod that comes waits for a node that does not answer any more only if what the node may not
// know of can have selected the pod.
func TestSelectionOfAnother(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*world.World)
		waits  bool
	}{
		"nothing":                        {func(*world.World) {}, false},
		"another EgressIP's status":      {changed("e1", func(e *world.EgressIP) { e.Items[0].Node = "n3" }), false},
		"another EgressIP's spec":        {changed("e1", func(e *world.EgressIP) { e.Generation++ }), true},
		"another EgressIP in force":      {changed("e1", waits), false},
		"the EgressIP in force":          {changed("e0", waits), false},
		"an EgressIP that comes":         {newEgressIP(3, "a=3"), false},
		"an EgressIP that goes":          {func(w *world.World) { w.DelEgressIP("e2") }, true},
		"a namespace that comes":         {labelled("another", "a"), false},
		"another namespace's labels":     {labelled("ns1", "a"), false},
		"the namespace's labels":         {labelled("ns0", "a"), true},
		"the host of an EgressService":   {hosted("n3", 0), false},
		"the spec of an EgressService":   {hosted("", 1), true},
		"another EgressIP that forbids":  {changed("e1", forbids), false},
		"the EgressIP that forbids":      {changed("e0", forbids), false},
		"another EgressIP that drops":    {changed("e1", drops), false},
		"an EgressService that binds":    {binding, false},
		"networks of an EgressIPTraffic": {networks, true},
	} {
		if waits := aloneAfter(t, c.change); waits != c.waits {
			t.Errorf("%s: the pod waits: %t", what, waits)
		}
	}
}

// TestEndpointEnds: an EndpointSlice without names of pods has a pod be an EgressService's by its address, and one with
// the name of a former pod its successor that has the address. A node that does not know yet that the endpoint has gone
// translates for the EgressService.
func TestEndpointEnds(t *testing.T) {
	none := func(w *world.World) { w.SetService(compiletest.LoadBalancer(0)) }
	at := func(pod string) func(*world.World) {
		return func(w *world.World) {
			s := compiletest.LoadBalancer(0, compiletest.Pod(3, "n1"))
			for i := range s.Ports[0].Endpoints {
				s.Ports[0].Endpoints[i].Pod = pod
			}
			w.SetService(s)
		}
	}
	for what, c := range map[string]struct {
		before, change func(*world.World)
		waits          bool
	}{
		"ends":                          {at(""), none, true},
		"gets the name of another pod":  {at(""), at("other"), true},
		"its Service goes":              {at(""), func(w *world.World) { w.DelService("ns0/s0") }, true},
		"the pod's, by its name, ends":  {at(compiletest.Pod(3, "n1").Name), none, true},
		"another pod's ends":            {at("other"), none, false},
		"another pod's Service changes": {at("other"), at("third"), false},
		"of another namespace ends": {func(w *world.World) {
			at("")(w)
			s := compiletest.LoadBalancer(1, compiletest.Pod(3, "n1"))
			w.SetService(s)
			w.SetEgressService(compiletest.EgressService(1))
		}, func(w *world.World) { w.SetService(compiletest.LoadBalancer(1)) }, false},
	} {
		if waits := waitsAfter(t, "0", "e0", c.before, c.change); waits != c.waits {
			t.Errorf("%s: the pod waits: %t", what, waits)
		}
	}
}

// TestServiceComes: an EgressService has a Service that comes. Nodes may know endpoints of that which was there before.
func TestServiceComes(t *testing.T) {
	without := compiletest.LoadBalancer(0)
	without.Pods = nil
	elsewhere := func(w *world.World) {
		w.SetEgressService(compiletest.EgressService(1))
		w.SetService(compiletest.LoadBalancer(1))
	}
	for what, c := range map[string]struct {
		comes func(*world.World)
		waits bool
	}{
		"with a selector":      {behindService, true},
		"without a selector":   {func(w *world.World) { w.SetService(without) }, true},
		"of another namespace": {elsewhere, false},
	} {
		if waits := waitsAfter(t, "0", "e0", func(*world.World) {}, c.comes); waits != c.waits {
			t.Errorf("%s: the pod waits: %t", what, waits)
		}
	}
}

// aloneAfter reports whether a pod that comes waits, which one EgressIP selects alone. The EgressService has a Service.
func aloneAfter(t *testing.T, change func(*world.World)) bool {
	return waitsAfter(t, "0", "e0", func(w *world.World) { w.SetService(compiletest.LoadBalancer(0)) }, change)
}

// waitsAfter reports whether a pod that comes is kept from an EgressIP: n2 has answered, but not after a change.
func waitsAfter(t *testing.T, group, by string, before, change func(*world.World)) bool {
	s := tell(t, 1)
	s.w.SetNamespace(&world.Namespace{Name: "ns1"})
	hosted("", 0)(s.w)
	before(s.w)
	s.machine = clearance.Machine{}
	s.machine.Begin(s.w, clearance.Former{})
	s.group("0")
	s.answer(nil)
	change(s.w)
	s.step()
	p := compiletest.Pod(3, "n1")
	p.Namespace, p.Labels = "ns0", map[string]string{"a": group}
	s.w.SetPod(p)
	s.step()
	return s.w.MayTranslate("n2", world.PodAddr{IP: p.IPs[0]}, ref.OfKey(by))
}

// TestDisplaced: a pod that several objects select waits for a node which may not know that another one has come before
// the one that had the pod. It does not wait where an object comes that only stands by.
func TestDisplaced(t *testing.T) {
	nothing := func(*world.World) {}
	for what, c := range map[string]struct {
		by             string
		before, change func(*world.World)
		waits          bool
	}{
		"an older EgressIP comes":              {"e-1", nothing, newEgressIP(-1, "a=2"), true},
		"a younger EgressIP comes":             {"e2", nothing, newEgressIP(3, "a=2"), false},
		"an older EgressIP of others comes":    {"e2", nothing, newEgressIP(-1, "a=9"), false},
		"the older EgressIP goes out of force": {"e3", newEgressIP(3, "a=2"), changed("e2", fails), true},
		"the older EgressIP comes into force":  {"e-1", unassigned(-1, "a=2"), newEgressIP(-1, "a=2"), true},
		"the EgressService comes into force":   {"ns0/s0", behindService, hosted(world.HostAll, 0), true},
		"the EgressService goes out of force":  {"e2", inForce, hosted("", 0), true},
		"its Service loses the family":         {"e2", inForce, ofIPv6, true},
		"an EgressIP forbids it":               {"e2", inForce, changed("e2", forbids), true},
		"an EgressIP comes that forbids it": {"e2", inForce, func(w *world.World) {
			newEgressIP(3, "a=2")(w)
			changed("e3", forbids)(w)
		}, true},
	} {
		if waits := waitsAfter(t, "2", c.by, c.before, c.change); waits != c.waits {
			t.Errorf("%s: the pod waits: %t", what, waits)
		}
	}
}

func changed(name string, change func(*world.EgressIP)) func(*world.World) {
	return func(w *world.World) {
		e := *w.EgressIP(name)
		e.Items = append([]world.Assignment(nil), e.Items...)
		change(&e)
		w.SetEgressIP(&e)
	}
}

// newEgressIP has an EgressIP come that is in force on n2, and unassigned one without a node.
func newEgressIP(i int, pods string) func(*world.World) {
	return placed(compiletest.EgressIP(i, pods, compiletest.EgressAddr(9)[0]), "n2")
}

func unassigned(i int, pods string) func(*world.World) {
	return func(w *world.World) { w.SetEgressIP(compiletest.EgressIP(i, pods, compiletest.EgressAddr(9)[0])) }
}

func labelled(namespace, value string) func(*world.World) {
	return func(w *world.World) {
		w.SetNamespace(&world.Namespace{Name: namespace, Labels: map[string]string{"l": value}})
	}
}

func hosted(node string, generation int64) func(*world.World) {
	return func(w *world.World) {
		e := compiletest.EgressService(0)
		e.Host, e.Generation = node, generation
		w.SetEgressService(e)
	}
}

func forbids(e *world.EgressIP) { e.NeverOverridden = true }

func waits(e *world.EgressIP) { e.InForce = [2]bool{} }

func fails(e *world.EgressIP) { e.InForce, e.Items = [2]bool{}, nil }

func drops(e *world.EgressIP) { e.DropWhenUnassigned = true }

// binding has an EgressService with a Service that a load balancer gives addresses, and drop what it has no host for.
func binding(w *world.World) {
	w.SetService(compiletest.LoadBalancer(0))
	e := compiletest.EgressService(0)
	e.DropWhenUnassigned = true
	w.SetEgressService(e)
}

// behindService has pods of group 2 be behind the Service of an EgressService, and inForce has that in force.
func behindService(w *world.World) {
	s := compiletest.LoadBalancer(0)
	s.Pods, _ = labels.Parse("a=2")
	w.SetService(s)
}

// ofIPv6 has that Service lose IPv4.
func ofIPv6(w *world.World) {
	s := *w.Service("ns0/s0")
	s.ClusterIPs = []netip.Addr{netip.MustParseAddr("fd00:10:96::1")}
	w.SetService(&s)
}

func inForce(w *world.World) {
	behindService(w)
	hosted(world.HostAll, 0)(w)
}

func networks(w *world.World) {
	w.SetTraffic(compiletest.Traffic(1, "b", "172.30.0.0/16"))
}

// TestRankOfOtherFamily: an object that comes into force for one family displaces nothing in the other one.
func TestRankOfOtherFamily(t *testing.T) {
	older := func(inForce bool) func(*world.World) {
		return func(w *world.World) {
			e := compiletest.EgressIP(-1, "a=2", compiletest.EgressAddr(9)[1])
			e.Items = []world.Assignment{{Node: "n3", IP: e.IPs[0]}}
			e.InForce[world.V6] = inForce
			w.SetEgressIP(e)
		}
	}
	if waitsAfter(t, "2", "e2", older(false), older(true)) {
		t.Error("the pod's packets over IPv4 wait")
	}
}
