package clearance_test

import (
	"testing"

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
		"an EgressIP that comes":         {newEgressIP, false},
		"an EgressIP that goes":          {func(w *world.World) { w.DelEgressIP("e2") }, true},
		"a namespace that comes":         {labelled("another", "a"), false},
		"another namespace's labels":     {labelled("ns1", "a"), false},
		"the namespace's labels":         {labelled("ns0", "a"), true},
		"the host of an EgressService":   {hosted("n3", 0), false},
		"the spec of an EgressService":   {hosted("", 1), true},
		"an annotation that forbids":     {changed("e1", func(e *world.EgressIP) { e.NeverOverridden = true }), true},
		"an annotation that drops":       {changed("e1", drops), true},
		"an EgressService that binds":    {binding, true},
		"networks of an EgressIPTraffic": {networks, true},
	} {
		s := tell(t, 1)
		s.w.SetNamespace(&world.Namespace{Name: "ns1"})
		hosted("", 0)(s.w)
		s.group("0")
		s.answer(nil)
		c.change(s.w)
		s.step()
		p := compiletest.Pod(3, "n1")
		p.Namespace, p.Labels = "ns0", map[string]string{"a": "0"}
		s.w.SetPod(p)
		s.step()
		if waits := s.w.MayTranslate("n2", p.IPs[0], ref.OfKey("e0")); waits != c.waits {
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

func newEgressIP(w *world.World) {
	w.SetEgressIP(compiletest.EgressIP(3, "a=3", compiletest.EgressAddr(3)[0]))
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

func drops(e *world.EgressIP) { e.DropWhenUnassigned = true }

// binding has an EgressService with a Service that a load balancer gives addresses, and drop what it has no host for.
func binding(w *world.World) {
	w.SetService(compiletest.LoadBalancer(0))
	e := compiletest.EgressService(0)
	e.DropWhenUnassigned = true
	w.SetEgressService(e)
}

func networks(w *world.World) {
	w.SetTraffic(compiletest.Traffic(1, "b", "172.30.0.0/16"))
}
