package clearance_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// endpointsOf has the Service of others, s0, have these pods as endpoints.
func endpointsOf(pods ...int) func(*world.World) {
	return func(w *world.World) {
		var all []*world.Pod
		for _, i := range pods {
			all = append(all, compiletest.Pod(i, "n1"))
		}
		s := *compiletest.LoadBalancer(0, all...)
		for i := range s.Ports[0].Endpoints {
			e := &s.Ports[0].Endpoints[i]
			for _, p := range all {
				if p.IPs[0] == e.Addr() || len(p.IPs) > 1 && p.IPs[1] == e.Addr() {
					e.Pod = p.Name
				}
			}
		}
		s.Pods, _ = labels.Parse("a=5")
		w.SetService(&s)
	}
}

func gone(w *world.World) { w.DelEgressService("ns0/s0") }

func unserved(w *world.World) { w.DelService("ns0/s0") }

// another has a Service without an EgressService select pods.
func another(selector string) func(*world.World) {
	return func(w *world.World) {
		s := *compiletest.LoadBalancer(0)
		s.Name, s.UID, s.LoadBalancerIPs = "another", "uid-another", nil
		s.Pods, _ = labels.Parse(selector)
		w.SetService(&s)
	}
}

func selectingOthers(w *world.World) {
	s := *w.Service("ns0/s0")
	s.Pods, _ = labels.Parse("a=6")
	w.SetService(&s)
}

// TestServicesOfOthers: p0 is e2's on n2. An EgressService of others in the namespace gets another endpoint; then it
// goes, or changes. p0 goes on though n2 hangs.
func TestServicesOfOthers(t *testing.T) {
	for what, c := range map[string]struct{ before, first, second func(*world.World) }{
		"another endpoint, then the EgressService goes":    {both(endpointsOf(2), onN2), endpointsOf(2, 3), gone},
		"an endpoint less, then the EgressService goes":    {both(endpointsOf(2, 3), onN2), endpointsOf(2), gone},
		"no endpoint changes, and the EgressService comes": {endpointsOf(2), ofOthers, onN2},
		"another endpoint, then it moves to n2": {
			both(endpointsOf(2), hosted("n3", 0)), endpointsOf(2, 3), onN2},
		"another endpoint without EgressService, then an EgressIP of others": {
			endpointsOf(2), endpointsOf(2, 3), ofOthers},
		"an EgressIP of others, then another endpoint": {both(endpointsOf(2), onN2), ofOthers, endpointsOf(2, 3)},
		"its Service goes": {both(endpointsOf(2), onN2), func(*world.World) {}, unserved},
		"an EgressIP of others, then its Service selects others": {
			both(endpointsOf(2), onN2), ofOthers, selectingOthers},
		"its Service selects others, then it goes": {both(endpointsOf(2), onN2), selectingOthers, gone},
		"a Service without EgressService lets go of p0, then it goes": {
			both(endpointsOf(2), both(onN2, another("a=2"))), another("a=6"), gone},
		"an EgressIP of others, then it goes": {both(endpointsOf(2), onN2), ofOthers, gone},
	} {
		goesOn(t, what, c.before, c.first, c.second, true)
	}
	// n2 may know p0 as the endpoint that it was
	goesOn(t, "an endpoint no more, then the EgressService comes", endpointsOf(0, 2), endpointsOf(2), onN2, false)
	goesOn(t, "the endpoint no more, then the EgressService comes", endpointsOf(0), endpointsOf(), onN2, false)
	goesOn(t, "the endpoint no more in the step in which the EgressService comes", endpointsOf(0), func(*world.World) {},
		both(onN2, endpointsOf()), false)
	unassigned := both(endpointsOf(0, 2), hosted("", 0))
	goesOn(t, "an endpoint no more, then its host is n2", unassigned, endpointsOf(2), onN2, false)
}

// TestFormerEndpointComesUnder: p0 is nobody's when it is an endpoint no more and the EgressService comes. n2 may take
// it for the EgressService's when an EgressIP comes for it.
func TestFormerEndpointComesUnder(t *testing.T) {
	for _, c := range []struct {
		what           string
		endpoints, now func(*world.World)
		serves         bool
	}{
		{"it was one of two endpoints", endpointsOf(0, 2), endpointsOf(2), false},
		{"it was the endpoint", endpointsOf(0), endpointsOf(), false},
		{"no endpoint has changed", endpointsOf(2), func(*world.World) {}, true},
	} {
		s := tell(t, 1)
		podOf("a=4")(s.w)
		other := *compiletest.Pod(3, "n1")
		other.Labels = map[string]string{"a": "2"}
		s.w.SetPod(&other)
		c.endpoints(s.w)
		s.machine = clearance.Machine{}
		s.machine.Begin(s.w, clearance.Former{})
		s.step()
		s.answerAll()
		for _, change := range []func(*world.World){c.now, onN2, newEgressIP(-1, "a=4")} {
			change(s.w)
			s.step()
		}
		s.serves("e-1", c.what, c.serves)
	}
}

// TestNetworksOfOthers: p0 is e2's on n2, which has no trafficSelector. An EgressIP of other namespaces, on another
// node, with a trafficSelector comes; then an EgressIPTraffic. p0 goes on though n2 hangs.
func TestNetworksOfOthers(t *testing.T) {
	ofOthersLimited := both(ofOthers, changed("e-1", func(e *world.EgressIP) {
		e.Traffic = compiletest.TrafficSelector("z")
	}))
	for what, c := range map[string]struct{ before, first, second func(*world.World) }{
		"an EgressIP with networks comes, then an EgressIPTraffic of nobody": {
			func(*world.World) {}, ofOthersLimited, unused},
		"an EgressIP with networks comes, then its EgressIPTraffic": {
			func(*world.World) {}, ofOthersLimited, func(w *world.World) {
				w.SetTraffic(compiletest.Traffic(7, "z", "172.30.0.0/16"))
			}},
		"an EgressIP with networks comes into force, then an EgressIPTraffic of nobody": {
			both(ofOthersLimited, changed("e-1", func(e *world.EgressIP) { e.InForce = [2]bool{} })),
			changed("e-1", func(e *world.EgressIP) { e.InForce = [2]bool{true, true} }), unused},
		"an EgressIP with networks goes, then its EgressIPTraffic": {
			ofOthersLimited, func(w *world.World) { w.DelEgressIP("e-1") }, unused},
	} {
		goesOn(t, what, c.before, c.first, c.second, true)
	}
}

// goesOn has p0 led to n2 for e2, and two changes by others after it. goes says whether p0 is led on then.
func goesOn(t *testing.T, what string, before, first, second func(*world.World), goes bool) {
	t.Helper()
	s := tell(t, 1)
	podOf("a=2")(s.w)
	before(s.w)
	s.machine = clearance.Machine{}
	s.machine.Begin(s.w, clearance.Former{})
	s.step()
	s.answerAll()
	s.servesE2(what+", before", true)
	first(s.w)
	s.step()
	s.servesE2(what+", after the first", true)
	second(s.w)
	s.step()
	s.servesE2(what+", after the second", goes)
}
