package service_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/world"
)

// TestUsersNameNoAddressOfOthers: spec.externalIPs, which anybody with role edit writes, take no address that is used
// inside nodes, of a host, a gateway, or another namespace's load balancer, even if they have it already: a virtual
// address is on no host for a moment when it moves. A load balancer's word is served.
func TestUsersNameNoAddressOfOthers(t *testing.T) {
	vip, gateway, shared := compiletest.V4(172, 18, 0, 240), netip.MustParseAddr("172.18.0.1"),
		netip.MustParseAddr("192.0.2.7")
	for _, x := range []struct {
		ip              netip.Addr
		namespace       string
		port            uint16
		lets            bool
		user, balancers string // what is said; "" if it is served
	}{
		{netip.MustParseAddr("fd69::3"), "evil", 30081, false, "for use inside nodes", "for use inside nodes"},
		{vip, "evil", 8080, false, "address of node n1", ""},
		{vip, "evil", 8080, true, "", ""},
		{vip, "evil", 6443, true, "the API server", ""},
		{gateway, "evil", 9, false, "default gateway of node n1", ""},
		{shared, "evil", 80, false, "load balancer of Service shop/web", ""},
		{shared, "shop", 80, false, "", ""},
		{netip.MustParseAddr("172.18.0.0"), "evil", 80, false, "no address that a host can have", ""},
		{netip.MustParseAddr("172.18.0.255"), "evil", 80, false, "no address that a host can have", ""},
		{netip.MustParseAddr("240.0.0.1"), "evil", 80, false, "no address that a host can have", ""},
		{netip.MustParseAddr("255.255.255.255"), "evil", 80, false, "no address that a host can have", ""},
		{netip.MustParseAddr("192.0.2.9"), "evil", 80, false, "", ""},
	} {
		w := compiletest.Small("n1", world.SharedGateway)
		n := *w.Node("n1")
		n.HostAddrs, n.LetsExternalIPs = append(slices.Clone(n.HostAddrs), vip), x.lets
		n.Gateways = []netip.Addr{gateway}
		w.SetNode(&n)
		w.SetService(&world.Service{Namespace: "shop", Name: "web", LoadBalancerIPs: []netip.Addr{shared},
			Ports: []world.ServicePort{{Protocol: "tcp", Port: 443}}})
		s := world.Service{Namespace: x.namespace, Name: "s", ClusterIPs: []netip.Addr{compiletest.V4(10, 96, 0, 9)},
			Ports: []world.ServicePort{{Protocol: "tcp", Port: x.port}}}
		byUser, byBalancer := s, s
		byUser.ExternalIPs, byBalancer.LoadBalancerIPs = []netip.Addr{x.ip}, []netip.Addr{x.ip}
		f := world.Frontend{IP: x.ip, Protocol: "tcp", Port: x.port}
		byUser.Conditions = []world.Condition{{Type: world.ConditionServed, Status: "True", Since: time.Unix(1, 0),
			Message: world.FormatServed([]world.Frontend{f})}}
		for want, s := range map[*string]*world.Service{&x.user: &byUser, &x.balancers: &byBalancer} {
			w.SetService(s)
			said := ""
			for _, r := range service.Refusals(&w.View, s) {
				said += r.Message
			}
			if gets := service.Gets(&w.View, s, f); gets != (*want == "") || !strings.Contains(said, *want) ||
				gets != (said == "") {
				t.Errorf("%+v, load balancer %v: %q", x, s.LoadBalancerIPs, said)
			}
		}
	}
}

// TestUsersLoseAddressOfOthers: who decides about a Service is told when somebody else gets a better claim.
func TestUsersLoseAddressOfOthers(t *testing.T) {
	ip := netip.MustParseAddr("192.0.2.7")
	for name, claim := range map[string]func(*world.World){
		"host": func(w *world.World) {
			n := *w.Node("n1")
			n.HostAddrs = append(slices.Clone(n.HostAddrs), ip)
			w.SetNode(&n)
		},
		"gateway": func(w *world.World) {
			n := *w.Node("n1")
			n.Gateways = []netip.Addr{ip}
			w.SetNode(&n)
		},
		"load balancer": func(w *world.World) {
			w.SetService(&world.Service{Namespace: "bank", Name: "web", LoadBalancerIPs: []netip.Addr{ip},
				Ports: []world.ServicePort{{Protocol: "tcp", Port: 443}}})
		},
	} {
		w := compiletest.Small("n1", world.SharedGateway)
		r := service.NewRefuser()
		w.FollowChanges(r.NoteChanged)
		w.SetService(asking("young", ip.String(), 0))
		if says, _ := refusedTo(w, r); says != "" {
			t.Fatalf("%s: refused before: %q", name, says)
		}
		claim(w)
		if says, _ := refusedTo(w, r); says == "" {
			t.Errorf("%s: the Service keeps the address", name)
		}
	}
}
