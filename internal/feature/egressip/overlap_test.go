package egressip_test

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	decider "github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

func selector(s string) labels.Selector {
	l, err := labels.Parse(s)
	if err != nil {
		panic(err)
	}
	return l
}

func aPod(ns, name string, l labels.Set) *world.Pod {
	return &world.Pod{Namespace: ns, Name: name, UID: ns + name, Labels: l, IPs: []netip.Addr{addr("10.244.0.3")}}
}

// overlapped is what every EgressIP's condition says, of those that stand by.
func overlapped(w *world.World, o *egressip.Overlapper) map[string]string {
	o.Update(w)
	out := map[string]string{}
	for e := range world.Each[world.EgressIP](&w.View, world.KindEgressIP) {
		if c, _ := o.Condition(&w.View, e); c.Status == "True" {
			out[e.Name] = c.Message
		}
	}
	return out
}

// Two select the same pods: the younger one stands by, says so once, and serves them when the older one is gone.
func TestOverlapped(t *testing.T) {
	w, o := newWorld(), egressip.NewOverlapper(handover.NewPods())
	w.FollowChanges(o.NoteChanged)
	three(w)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	for _, name := range []string{"a", "b", "c"} {
		w.SetPod(aPod("ns", name, nil))
	}
	w.SetEgressIP(object("young", 1, "172.18.0.34"))
	w.SetEgressIP(object("old", 2, "172.18.0.33"))
	settle(w)
	o.Update(w)
	c, events := o.Condition(&w.View, w.EgressIP("young"))
	if c.Status != "True" || c.Reason != egressip.ReasonServedByOther ||
		!strings.Contains(c.Message, "stands by for 3 pods") || !strings.Contains(c.Message, "old (3)") {
		t.Errorf("young: %+v", c)
	}
	if len(events) != 1 || events[0].Reason != egressip.EventOverlap || !events[0].Warning {
		t.Errorf("events: %+v", events)
	}
	said := *w.EgressIP("young")
	said.Conditions = append(slices.Clone(said.Conditions), c)
	if _, again := o.Condition(&w.View, &said); len(again) > 0 {
		t.Errorf("told again: %+v", again)
	}
	if c, events := o.Condition(&w.View, w.EgressIP("old")); c.Status != "False" || len(events) > 0 {
		t.Errorf("old: %+v %+v", c, events)
	}
	w.DelEgressIP("old")
	o.Update(w)
	if c, _ := o.Condition(&w.View, w.EgressIP("young")); c.Status != "False" || o.Pods() != 0 {
		t.Errorf("young, alone: %+v, %d pods", c, o.Pods())
	}
}

// An older EgressIP without a node serves nobody: the younger one that has a node does, and the older one stands by.
func TestOverlappedWithoutNode(t *testing.T) {
	w, o := newWorld(), egressip.NewOverlapper(handover.NewPods())
	w.FollowChanges(o.NoteChanged)
	three(w)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	w.SetPod(aPod("ns", "a", nil))
	w.SetEgressIP(object("young", 1, "172.18.0.34"))
	w.SetEgressIP(object("old", 2, "172.19.0.33"))
	settle(w)
	have := overlapped(w, o)
	if len(have) != 1 || !strings.Contains(have["old"], "1 pod ") || !strings.Contains(have["old"], "young (1)") {
		t.Errorf("have %v", have)
	}
}

// Families are decided each for itself: one of IPv4 and one of IPv6 share a pod and do not overlap.
func TestFamiliesDoNotOverlap(t *testing.T) {
	w, o := newWorld(), egressip.NewOverlapper(handover.NewPods())
	w.FollowChanges(o.NoteChanged)
	three(w)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	w.SetPod(aPod("ns", "a", nil))
	w.SetEgressIP(object("four", 1, "172.18.0.34"))
	w.SetEgressIP(object("six", 2, "fd00:18::34"))
	settle(w)
	if have := overlapped(w, o); len(have) != 0 {
		t.Errorf("have %v", have)
	}
	w.SetEgressIP(object("both", 3, "172.18.0.35", "fd00:18::35"))
	settle(w)
	have := slices.Sorted(maps.Keys(overlapped(w, egressip.NewOverlapper(handover.NewPods()))))
	if !slices.Equal(have, []string{"four", "six"}) {
		t.Errorf("have %v", have)
	}
}

var someSelectors = []string{"", "app=a", "app=b", "app in (a,c)", "app!=a", "app", "tier=x,app=a"}

func someLabels(t *rapid.T) labels.Set {
	l := labels.Set{}
	for key, values := range map[string][]string{"app": {"", "a", "b", "c"}, "tier": {"", "x"}} {
		if v := rapid.SampledFrom(values).Draw(t, key); v != "" {
			l[key] = v
		}
	}
	return l
}

// change is one random change of a world.
func change(t *rapid.T, w *world.World) {
	ns := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "namespace")
	name := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "name"))
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0:
		w.SetNamespace(&world.Namespace{Name: ns, Labels: someLabels(t)})
		return
	case 1:
		w.DelNamespace(ns)
		return
	case 2:
		w.DelPod(ns + "/" + name)
		return
	case 3:
		w.DelEgressIP(name)
		return
	case 4:
		p := aPod(ns, name, someLabels(t))
		p.Completed = rapid.IntRange(0, 4).Draw(t, "completed") == 0
		w.SetPod(p)
		return
	}
	e := object(name, rapid.IntRange(0, 2).Draw(t, "age"), rapid.SampledFrom([][]string{{"172.18.0.33"},
		{"fd00:18::33"}, {"172.18.0.34", "fd00:18::34"}}).Draw(t, "ips")...)
	e.Namespaces, e.Pods = selector(rapid.SampledFrom(someSelectors).Draw(t, "namespaces")),
		selector(rapid.SampledFrom(someSelectors).Draw(t, "pods"))
	for _, ip := range e.IPs {
		if rapid.Bool().Draw(t, "assigned") {
			e.Items = append(e.Items, world.Assignment{Node: "n1", IP: ip})
		}
	}
	e.DropWhenUnassigned = rapid.IntRange(0, 4).Draw(t, "drop") == 0
	w.SetEgressIP(e)
}

// The memo says what a count from nothing says, and that is what World.Claims says. Which EgressIPs select a pod is
// found by a label; it is those that match it.
func TestOverlapsAreWhatClaimsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, o := newWorld(), egressip.NewOverlapper(handover.NewPods())
		w.FollowChanges(o.NoteChanged)
		o.Update(w)
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			change(t, w)
			if rapid.Bool().Draw(t, "look") {
				o.Update(w)
			}
		}
		have, anew := overlapped(w, o), overlapped(w, egressip.NewOverlapper(handover.NewPods()))
		if !reflect.DeepEqual(have, anew) {
			t.Fatalf("memo %v\nanew %v", have, anew)
		}
		for e := range world.Each[world.EgressIP](&w.View, world.KindEgressIP) {
			selected := selectedBy(w, e)
			for p := range w.EachPod() {
				if is := slices.Contains(w.Selecting(p), e); is != slices.Contains(selected, p) {
					t.Fatalf("%s is among those that select %s: %v", e.Name, p.Key(), is)
				}
			}
			if n := standsBy(w, e); (n > 0) != (have[e.Name] != "") || n > 0 &&
				!strings.Contains(have[e.Name], fmt.Sprintf("for %d pod", n)) {
				t.Fatalf("%s stands by for %d: %q", e.Name, n, have[e.Name])
			}
		}
	})
}

// selectedBy are the pods that an EgressIP selects, served by it or not, by the definition.
func selectedBy(w *world.World, e *world.EgressIP) (out []*world.Pod) {
	for p := range w.EachPod() {
		ns := w.Namespace(p.Namespace)
		if ns != nil && !p.HostNetwork && !p.Completed && e.Namespaces.Matches(labels.Set(ns.Labels)) &&
			e.Pods.Matches(labels.Set(p.Labels)) {
			out = append(out, p)
		}
	}
	return out
}

// standsBy counts as the definition has it.
func standsBy(w *world.World, e *world.EgressIP) int {
	n := 0
	for _, p := range selectedBy(w, e) {
		if slices.ContainsFunc(w.Config.Families(), func(f world.Family) bool {
			claims := w.Claims(p, ref.DefaultNetwork, f)
			return e.Asks(f) && len(claims) > 0 && claims[0].By.Name != e.Name
		}) {
			n++
		}
	}
	return n
}

// crowd is 10,000 pods and 1,000 EgressIPs, each pod selected by two, in so many namespaces.
func crowd(namespaces int) *world.World {
	w := newWorld()
	for i := range namespaces {
		w.SetNamespace(&world.Namespace{Name: fmt.Sprint("ns-", i), Labels: labels.Set{"name": fmt.Sprint("ns-", i)}})
	}
	for i := range 1000 {
		e := object(fmt.Sprint("e-", i), i, "172.18.0.33")
		e.Namespaces, e.Pods = selector(fmt.Sprint("name=ns-", i%namespaces)), selector(fmt.Sprintf("app=app-%d",
			i/2/namespaces*namespaces+i%namespaces))
		e.Items = []world.Assignment{{Node: "n1", IP: addr("172.18.0.33")}}
		w.SetEgressIP(e)
	}
	for i := range 10000 {
		w.SetPod(aPod(fmt.Sprint("ns-", i%namespaces), fmt.Sprint("p-", i), labels.Set{"app": fmt.Sprint("app-",
			i%500)}))
	}
	return w
}

// BenchmarkOverlaps is the cost of a decision: from nothing, and after one pod's change.
func BenchmarkOverlaps(b *testing.B) {
	for _, namespaces := range []int{1, 200} {
		w := crowd(namespaces)
		b.Run(fmt.Sprintf("namespaces=%d/all", namespaces), func(b *testing.B) {
			for b.Loop() {
				o := egressip.NewOverlapper(handover.NewPods())
				o.Update(w)
			}
		})
		b.Run(fmt.Sprintf("namespaces=%d/pod", namespaces), func(b *testing.B) {
			o := egressip.NewOverlapper(handover.NewPods())
			w.FollowChanges(o.NoteChanged)
			o.Update(w)
			for b.Loop() {
				o.NoteChanged(world.Entry{Kind: world.KindPod, Key: "ns-0/p-0"})
				o.Update(w)
			}
		})
	}
}

// TestOverlappedByOneThatDrops: an older one that has no node, and what its pods send dropped, is not said to serve
// them, nor that the younger one's packets leave or are dropped by its own choice.
func TestOverlappedByOneThatDrops(t *testing.T) {
	w, d := newWorld(), egressip.NewOverlapper(handover.NewPods())
	w.FollowChanges(d.NoteChanged)
	w.SetNamespace(&world.Namespace{Name: "ns"})
	p := aPod("ns", "a", nil)
	p.Running, p.Node = true, "n1"
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetPod(p)
	old, young := object("old", 2, "172.19.0.33"), object("young", 1, "172.19.0.34") // in no node's network
	old.DropWhenUnassigned = true
	w.SetEgressIP(old)
	w.SetEgressIP(young)
	overlapped := func() world.Condition {
		desired, _ := d.Decide(decider.View{World: w, Now: time.Unix(1000, 0)})
		for _, x := range desired {
			if x.Key == "young" {
				return x.Decision.Conditions[0]
			}
		}
		return world.Condition{}
	}
	settle(w)
	if c := conditionOf(settle(w)["young"], egressip.ConditionFallback); c.Reason != "DroppedByOther" ||
		!strings.Contains(c.Message, "others decide about all of its pods: EgressIP/old (1, whose packets it has dropped)") {
		t.Errorf("Fallback: %+v", c)
	}
	if c := overlapped(); c.Status != "True" || c.Reason != "DroppedByOther" || !strings.Contains(c.Message,
		"because others decide about them: old (1, whose packets it has dropped); the oldest EgressIP that is in force "+
			"decides about a pod") {
		t.Errorf("Overlapped: %+v", c)
	}
	placed := *w.EgressIP("old")
	placed.Items = []world.Assignment{{Node: "n1", IP: old.IPs[0]}}
	w.SetEgressIP(&placed)
	if c := overlapped(); c.Reason != egressip.ReasonServedByOther ||
		!strings.Contains(c.Message, "serve them: old (1);") {
		t.Errorf("it has a node: %+v", c)
	}
}
