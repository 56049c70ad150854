package clearance_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestTurns: p0 is led to n2 for e2, which goes on. Something changes that ends no claim, then an object of another
// kind. A node whose watch of the former is late takes p0 for one of the latter's, if that may select p0 there.
func TestTurns(t *testing.T) {
	for what, c := range map[string]struct {
		before, first, second func(*world.World)
		waits                 bool
	}{
		"labels, then an EgressIP for the former ones": {
			podOf("a=2,b=1"), podOf("a=2,b=0"), newEgressIP(-1, "b=1"), true},
		"labels, then an EgressIP for others": {
			podOf("a=2,b=1"), podOf("a=2,b=0"), inNamespaces(newEgressIP(-1, "b=1"), "l=none"), false},
		"labels, then an EgressIP on another node": {
			podOf("a=2,b=1"), podOf("a=2,b=0"), onOther(newEgressIP(-1, "b=1")), false},
		"labels, and an EgressIP that comes to the node from another one": {
			podOf("a=2,b=1"), both(podOf("a=2,b=0"), onOther(newEgressIP(-1, "b=1"))), newEgressIP(-1, "b=1"), true},
		"labels, and an EgressIP that comes into force": {
			both(podOf("a=2,b=1"), unassigned(-1, "b=1")), podOf("a=2,b=0"), newEgressIP(-1, "b=1"), true},
		"nothing, and an EgressIP of others that comes into force": {
			unassigned(-1, "b=1"), func(*world.World) {}, newEgressIP(-1, "b=1"), false},
		"labels of the namespace, then an EgressIP for the former ones": {
			labelled("ns0", "x"), labelled("ns0", "y"), inNamespaces(newEgressIP(-1, "a=2"), "l=x"), true},
		"labels of another namespace": {
			labelled("ns1", "x"), labelled("ns1", "y"), inNamespaces(newEgressIP(-1, "a=2"), "l=x"), false},
		"what an EgressIP selects, then labels for the former selector": {
			newEgressIP(-1, "b=1"), changed("e-1", selects("b=2")), podOf("a=2,b=1"), true},
		"an EgressIP that forbids EgressServices, then one": {
			behindService, changed("e2", forbids), onN2, true},
		"what a Service selects, then its EgressService": {
			behindService, selectsOthers, onN2, true},
		"an EgressService without a host, then its Service": {
			both(onN2, selectsOthers), hosted("", 0), behindService, true},
		"an EgressIP of others, then an EgressIPTraffic of nobody": {
			func(*world.World) {}, ofOthers, unused, false},
		"labels, then an EgressIPTraffic of nobody": {
			func(*world.World) {}, podOf("a=2,b=1"), unused, false},
		"an EgressIP of others, then an EgressService of others": {
			selectsOthers, ofOthers, onN2, false},
		"an EgressIP of others, then a Service without an EgressService": {
			func(*world.World) {}, ofOthers, behindService, false},
		"what an EgressIP without networks selects, then its networks": {
			both(noNetworks, newEgressIP(-1, "a=2"), changed("e-1", limited)), changed("e-1", selects("a=7")), networks,
			true},
		"labels, then networks of an EgressIP that may select the former ones": {
			noNetworks, podOf("a=2,b=1"), networks, true},
		"labels, then networks of an EgressIP for others": {
			both(noNetworks, changed("e1", func(e *world.EgressIP) { e.Namespaces, _ = labels.Parse("l=none") })),
			podOf("a=2,b=1"), networks, false},
		"labels, then an EgressIP that may select the former ones has networks no more": {
			func(*world.World) {}, podOf("a=2,b=1"),
			func(w *world.World) { w.SetTraffic(compiletest.Traffic(1, "unused", "172.21.0.0/16")) }, true},
		"an EgressService goes, then its Service selects": {
			both(selectsOthers, onN2), func(w *world.World) { w.DelEgressService("ns0/s0") }, behindService, true},
	} {
		s := tell(t, 1)
		podOf("a=2")(s.w)
		c.before(s.w)
		s.machine = clearance.Machine{}
		s.machine.Begin(s.w, clearance.Former{})
		s.step()
		s.answerAll()
		s.servesE2(what+", before", true)
		c.first(s.w)
		s.step()
		s.servesE2(what+", after the first", true)
		c.second(s.w)
		s.step()
		s.servesE2(what, !c.waits)
		s.answerAll()
		s.servesE2(what+", once n2 has answered", true)
	}
}

func (s *story) servesE2(when string, want bool) {
	s.Helper()
	s.serves("e2", when, want)
}

// serves says whether n1 may lead p0's packets to n2 for an EgressIP.
func (s *story) serves(name, when string, want bool) {
	s.Helper()
	at := world.PodAddr{IP: compiletest.Pod(0, "n1").IPs[0]}
	if have := s.w.Cleared("n2") && !s.w.MayTranslate("n2", at, ref.OfKey(name)); have != want {
		s.Errorf("%s: n1 leads to n2 for %s: %t", when, name, have)
	}
}

func podOf(set string) func(*world.World) {
	return func(w *world.World) {
		p := compiletest.Pod(0, "n1")
		p.Labels, _ = labels.ConvertSelectorToLabelsMap(set)
		w.SetPod(p)
	}
}

func both(all ...func(*world.World)) func(*world.World) {
	return func(w *world.World) {
		for _, change := range all {
			change(w)
		}
	}
}

// ofOthers has an EgressIP come that selects nothing of ns0.
func ofOthers(w *world.World) { inNamespaces(onOther(newEgressIP(-1, "b=1")), "l=none")(w) }

func unused(w *world.World) { w.SetTraffic(compiletest.Traffic(7, "unused", "172.30.0.0/16")) }

func inNamespaces(comes func(*world.World), selector string) func(*world.World) {
	return both(comes, changed("e-1", func(e *world.EgressIP) { e.Namespaces, _ = labels.Parse(selector) }))
}

func onOther(comes func(*world.World)) func(*world.World) {
	return both(comes, changed("e-1", func(e *world.EgressIP) { e.Items[0].Node = "n3" }))
}

func selects(pods string) func(*world.EgressIP) {
	return func(e *world.EgressIP) {
		e.Generation++
		e.Pods, _ = labels.Parse(pods)
	}
}

func limited(e *world.EgressIP) { e.Traffic = compiletest.TrafficSelector("b") }

func noNetworks(w *world.World) { w.SetTraffic(compiletest.Traffic(1, "b")) }

// onN2 has the EgressService in force on n2.
func onN2(w *world.World) {
	e := compiletest.EgressService(0)
	e.Host, e.InForce = "n2", [2]bool{true, true}
	e.Items = []world.Assignment{{Node: "n2", IP: compiletest.LoadBalancer(0).LoadBalancerIPs[0]}}
	w.SetEgressService(e)
}

// selectsOthers has the Service of behindService select other pods.
func selectsOthers(w *world.World) {
	behindService(w)
	s := *w.Service("ns0/s0")
	s.Pods, _ = labels.Parse("a=5")
	w.SetService(&s)
}

// TestFormerState: a node that has not followed that a pod had other labels, or another pod its address, may hear first
// of an object that comes for these. So a claim that begins waits for the node.
func TestFormerState(t *testing.T) {
	for _, ends := range []bool{false, true} {
		s := tell(t, 1)
		s.group("2")
		s.answerAll()
		s.group("9")
		s.answerAll()
		if ends {
			s.group("")
			if s.pass(time.Minute); len(s.asked) > 0 {
				t.Errorf("asks %v about a pod without a claim", s.asked)
			}
		}
		s.group("2")
		s.servesE2("not asked", false)
		s.answerAll()
		s.servesE2("asked", true)
		newEgressIP(3, "a=9")(s.w)
		s.step()
		s.servesE2("asked, and an EgressIP comes", true)
	}
}

// TestSuccessor: a pod that gets the address of one of the same object waits for nobody.
func TestSuccessor(t *testing.T) {
	s := tell(t, 1)
	s.group("2")
	s.answerAll()
	s.group("")
	s.group("2")
	s.servesE2("at once", true)
}

// TestManyFormerStates: where more addresses had pods than are kept one by one, each address that comes waits.
func TestManyFormerStates(t *testing.T) {
	s, pods := tell(t, 1), netip.MustParsePrefix("fd00:10:244:1::/64")
	s.group("2")
	s.answerAll()
	last := *compiletest.Pod(3, "n1")
	last.Namespace = "ns0"
	sets := func(group string, ip netip.Addr) {
		last.Labels, last.IPs = map[string]string{"a": group}, []netip.Addr{ip}
		s.w.SetPod(&last)
		s.step()
	}
	const many = 20_000
	for i := range many {
		sets("9", world.Nth(pods, 1000+i))
		s.w.DelPod(last.Key())
		s.step()
	}
	kept := 0
	for i := range many {
		kept += min(1, len(s.w.Formers(world.PodAddr{IP: world.Nth(pods, 1000+i)})))
	}
	if kept > 5000 {
		t.Errorf("keeps %d", kept)
	}
	sets("2", world.Nth(pods, 100))
	waits := func() bool { return s.w.MayTranslate("n2", world.PodAddr{IP: last.IPs[0]}, ref.OfKey("e2")) }
	if !waits() {
		t.Error("an address does not wait")
	}
	if s.answerAll(); waits() {
		t.Error("it waits for a node that has answered")
	}
	s.servesE2("another pod", true)
}

// TestManySelections: what a node may not know of a namespace is not forgotten where much else changes meanwhile.
func TestManySelections(t *testing.T) {
	s := tell(t, 1)
	s.group("2")
	labelled("ns0", "x")(s.w)
	s.step()
	s.answerAll()
	labelled("ns0", "y")(s.w)
	s.step()
	for i := range 1100 {
		labelled(fmt.Sprint("other", i), "x")(s.w)
		s.step()
		labelled(fmt.Sprint("other", i), "y")(s.w)
		s.step()
	}
	s.servesE2("others change", true)
	inNamespaces(newEgressIP(-1, "a=2"), "l=x")(s.w)
	s.step()
	s.servesE2("an EgressIP comes", false)
}

// TestLabelsInOneFamily: a pod's address in a family without a claim waits for nobody, so that nobody is asked.
func TestLabelsInOneFamily(t *testing.T) {
	s := tell(t, 1)
	podOf("a=2")(s.w)
	changed("e2", func(e *world.EgressIP) { e.InForce[world.V6] = false })(s.w)
	s.step()
	s.answerAll()
	podOf("a=2,b=1")(s.w)
	s.step()
	if s.pass(time.Minute); len(s.asked) > 0 {
		t.Errorf("asks %v", s.asked)
	}
}

// TestFalls: an EgressService no longer comes before an EgressIP that has lost its networks before. A node that does
// not know the latter translates for the EgressIP, though the EgressService has the pod as before.
func TestFalls(t *testing.T) {
	s := tell(t, 1)
	behindService(s.w)
	service := *s.w.Service("ns0/s0")
	service.Pods, _ = labels.Parse("a=1")
	s.w.SetService(&service)
	onN2(s.w)
	s.group("1")
	s.answerAll()
	at, by := world.PodAddr{IP: compiletest.Pod(0, "n1").IPs[0]}, ref.Of(ref.EgressService, "ns0/s0")
	noNetworks(s.w)
	s.step()
	if s.w.MayTranslate("n2", at, by) {
		t.Error("waits when the EgressIP loses its networks")
	}
	e := *s.w.EgressService("ns0/s0")
	e.InForce = [2]bool{}
	s.w.SetEgressService(&e)
	s.step()
	if !s.w.MayTranslate("n2", at, by) {
		t.Error("does not wait when the EgressService falls")
	}
	if s.answerAll(); s.w.MayTranslate("n2", at, by) {
		t.Error("waits for a node that has answered")
	}
}

// TestElsewhere: n2 does not know that p0 has got other labels. It takes p0 for one of an EgressIP that comes on n3,
// and drops what n1 leads to it for e2. So it is asked, and is late if it hangs; nothing waits for it.
func TestElsewhere(t *testing.T) {
	s := tell(t, 1)
	podOf("a=2,b=1")(s.w)
	s.step()
	s.answerAll()
	podOf("a=2,b=0")(s.w)
	s.step()
	if s.pass(time.Minute); len(s.asked) > 0 {
		t.Errorf("asks %v about labels", s.asked)
	}
	onOther(newEgressIP(-1, "b=1"))(s.w)
	s.step()
	s.servesE2("an EgressIP comes on n3", true)
	s.mayDrop(0, "e2", true)
	if s.pass(time.Minute); !s.w.LateToFollow("n2") {
		t.Error("n2 is not late")
	}
	s.answer(nil)
	s.pass(time.Second)
	s.answerAll()
	s.mayDrop(0, "e2", false)
}

// TestManyTurns: of the former claims to an address few are kept, however many objects come for it.
func TestManyTurns(t *testing.T) {
	s := tell(t, 1)
	podOf("a=2,b=1")(s.w)
	s.step()
	s.answerAll()
	podOf("a=2,b=0")(s.w)
	for i := range 100 {
		e := compiletest.EgressIP(100+i, "b=1", compiletest.EgressAddr(9)[0])
		placed(e, "n2")(s.w)
	}
	s.step()
	at := world.PodAddr{IP: compiletest.Pod(0, "n1").IPs[0]}
	if n := len(s.w.Formers(at)); n > 40 {
		t.Errorf("keeps %d", n)
	}
	s.servesE2("not asked", false)
	s.answerAll()
	s.servesE2("asked", true)
}

// TestOwnEndpoint: a pod of an EgressService that becomes its endpoint does not wait, though n2 may not know the latest
// EgressIP.
func TestOwnEndpoint(t *testing.T) {
	s := tell(t, 1)
	behindService(s.w)
	onN2(s.w)
	s.group("2")
	s.answerAll()
	ofOthers(s.w)
	s.step()
	service := *compiletest.LoadBalancer(0, compiletest.Pod(0, "n1"))
	service.Pods = s.w.Service("ns0/s0").Pods
	s.w.SetService(&service)
	s.step()
	at := world.PodAddr{IP: compiletest.Pod(0, "n1").IPs[0]}
	if s.w.MayTranslate("n2", at, ref.Of(ref.EgressService, "ns0/s0")) {
		t.Error("waits for n2")
	}
}

// TestFallsElsewhere: an object that falls on one node may leave its packets to another one on any node.
func TestFallsElsewhere(t *testing.T) {
	s := tell(t, 1)
	both(noNetworks, podOf("a=2,b=1"), onOther(newEgressIP(-1, "b=7")))(s.w)
	s.step()
	s.answerAll()
	podOf("a=2,b=0")(s.w)
	s.step()
	s.servesE2("other labels", true)
	changed("e-1", selects("b=7"))(s.w)
	changed("e-1", func(e *world.EgressIP) { e.Namespaces, _ = labels.Parse("l=none") })(s.w)
	s.step()
	s.servesE2("an EgressIP that may have selected the former ones selects others", false)
	s.answerAll()
	s.servesE2("n2 has answered", true)
}
