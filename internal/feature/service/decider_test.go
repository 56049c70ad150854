package service_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/world"
)

// asking is a Service of some days that asks for an address.
func asking(name, ip string, days int) *world.Service {
	return &world.Service{Namespace: "shop", Name: name, UID: name, ExternalIPs: []netip.Addr{netip.MustParseAddr(ip)},
		Created: time.Unix(1e9, 0).AddDate(0, 0, -days), Ports: []world.ServicePort{{Protocol: "tcp", Port: 80}}}
}

// refusedTo has all decided, and returns what the condition of Service young says, and how many Events tell of it.
func refusedTo(w *world.World, r *service.Refuser) (says string, events int) {
	desired, _ := r.Decide(decide.View{World: w, Now: time.Unix(1e9, 0)})
	for _, d := range desired {
		r.Touched(w.Decide(d.Kind, d.Key, d.Decision))
		if d.Key == "shop/young" {
			events += len(d.Events)
		}
	}
	return decide.Condition(w.Service("shop/young").Conditions, service.ConditionRefused).Message, events
}

// TestRefusalIsToldOnce: who comes first in the place of another changes the words of a refusal, and is no news; one
// that has ended and comes back is. The next term's decider takes what the condition says as told.
func TestRefusalIsToldOnce(t *testing.T) {
	w, r := compiletest.Small("", world.SharedGateway), service.NewRefuser()
	r.Touched(w.SetService(asking("young", "192.0.2.7", 0)))
	for _, c := range []struct {
		name, ip string
		days     int
		says     string
		events   int
	}{
		{"old", "192.0.2.7", 1, "for Service shop/old,", 1}, {"older", "192.0.2.7", 2, "for Service shop/older,", 0},
		{"older", "192.0.2.8", 2, "for Service shop/old,", 0}, {"old", "192.0.2.8", 1, "", 0},
		{"old", "192.0.2.7", 1, "for Service shop/old,", 1},
	} {
		r.Touched(w.SetService(asking(c.name, c.ip, c.days)))
		says, events := refusedTo(w, r)
		if !strings.Contains(says, c.says) || (says == "") != (c.says == "") || events != c.events {
			t.Errorf("%s asks for %s: %d Events, want %d; the condition says %q", c.name, c.ip, events, c.events, says)
		}
	}
	if _, events := refusedTo(w, service.NewRefuser()); events != 0 {
		t.Errorf("the next term tells of it again")
	}
}

// TestRefusedForAnEgressIP: an address is refused as long as an EgressIP has a node for it, and no longer, whichever of
// the two comes first.
func TestRefusedForAnEgressIP(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.77")
	e := compiletest.EgressIP(0, "", ip)
	e.Items = []world.Assignment{{Node: "n1", IP: ip}}
	comes := []func(*world.World) []world.Touch{
		func(w *world.World) []world.Touch { return w.SetEgressIP(e) },
		func(w *world.World) []world.Touch { return w.SetService(asking("young", ip.String(), 0)) },
	}
	for _, first := range []int{0, 1} {
		w, r := compiletest.Small("", world.SharedGateway), service.NewRefuser()
		r.Touched(comes[first](w))
		r.Decide(decide.View{World: w})
		r.Touched(comes[1-first](w))
		if says, events := refusedTo(w, r); !strings.Contains(says, "of EgressIP e0") || events != 1 {
			t.Errorf("the condition says %q, with %d Events", says, events)
		}
		refusedTo(w, r)
		r.Touched(w.DelEgressIP("e0"))
		if says, _ := refusedTo(w, r); says != "" {
			t.Errorf("the EgressIP is gone, and the condition says %q", says)
		}
	}
}

// TestRefusedEndpoints: what EndpointSlices name and nobody can be at is told of when it comes, and no more when it is
// gone; and it is told of, too, where it is more than anybody would write by hand.
func TestRefusedEndpoints(t *testing.T) {
	w, r := compiletest.Small("", world.SharedGateway), service.NewRefuser()
	young := func(endpoints int) *world.Service {
		s := asking("young", "192.0.2.7", 0)
		for i := range endpoints {
			at := netip.AddrPortFrom(compiletest.V4(100, 64+i>>16, i>>8&255, i&255), 80)
			s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, world.Endpoint{AddrPort: at, Ready: true})
		}
		return s
	}
	for _, x := range []struct {
		endpoints int
		says      string
	}{{0, ""}, {1, "endpoint 100.64.0.0 is inside"}, {0, ""}, {50_000, "endpoint 100.64.0.0 is inside"}} {
		r.Touched(w.SetService(young(x.endpoints)))
		if says, _ := refusedTo(w, r); (says == "") != (x.says == "") || !strings.Contains(says, x.says) {
			t.Errorf("%d endpoints: the condition says %q", x.endpoints, says)
		}
	}
}

// TestRefusedForTheAPIServer: no Service draws hosts' connections to an API server away, wherever that runs.
func TestRefusedForTheAPIServer(t *testing.T) {
	w, r := compiletest.Small("", world.SharedGateway), service.NewRefuser()
	api := &world.Service{Namespace: "default", Name: "kubernetes",
		ClusterIPs: []netip.Addr{compiletest.V4(10, 96, 0, 1)},
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 443, Endpoints: []world.Endpoint{
			{AddrPort: netip.MustParseAddrPort("172.18.0.250:6443"), Ready: true}}}}}
	r.Touched(w.SetService(asking("young", "172.18.0.250", 0)))
	if says, _ := refusedTo(w, r); says != "" {
		t.Fatalf("the condition says %q", says)
	}
	r.Touched(w.SetService(api))
	if says, _ := refusedTo(w, r); !strings.Contains(says, "172.18.0.250 is an address of an API server") {
		t.Errorf("the condition says %q", says)
	}
	if ips := service.External(&w.View, w.Service("shop/young"), w.Service("shop/young").Ports[0]); len(ips) > 0 {
		t.Errorf("it gets %v", ips)
	}
}
