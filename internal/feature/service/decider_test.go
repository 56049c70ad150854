package service_test

import (
	"maps"
	"net/netip"
	"slices"
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

// newRefuser returns a world and a refuser that follows it.
func newRefuser() (*world.World, *service.Refuser) {
	w, r := compiletest.Small("", world.SharedGateway), service.NewRefuser()
	w.FollowChanges(r.NoteChanged)
	return w, r
}

// refusedTo has all decided, and returns what the condition of Service young says, and how many Events tell of it.
func refusedTo(w *world.World, r *service.Refuser) (says string, events int) {
	desired, _ := r.Decide(decide.View{World: w, Now: time.Unix(1e9, 0)})
	for _, d := range desired {
		w.Decide(d.Kind, d.Key, d.Decision)
		if d.Key == "shop/young" {
			events += len(d.Events)
		}
	}
	return decide.Condition(w.Service("shop/young").Conditions, service.ConditionRefused).Message, events
}

// TestRefusalIsToldOnce: who comes first in the place of another changes the words of a refusal, and is no news; one
// that has ended and comes back is. The next term's decider takes what the condition says as told.
func TestRefusalIsToldOnce(t *testing.T) {
	w, r := newRefuser()
	w.SetService(asking("young", "192.0.2.7", 0))
	for _, c := range []struct {
		name, ip string
		days     int
		says     string
		events   int
	}{
		{"old", "192.0.2.7", 1, "for Service shop/old,", 1}, {"older", "192.0.2.7", 2, "for Service shop/old,", 0},
		{"old", "192.0.2.8", 1, "for Service shop/older,", 0}, {"older", "192.0.2.9", 2, "", 0},
		{"young", "192.0.2.8", 0, "for Service shop/old,", 1}, {"young", "192.0.2.7", 0, "", 0},
		{"young", "192.0.2.8", 0, "for Service shop/old,", 1},
	} {
		w.SetService(asking(c.name, c.ip, c.days))
		says, events := refusedTo(w, r)
		if !strings.Contains(says, c.says) || (says == "") != (c.says == "") || events != c.events {
			t.Errorf("%s asks for %s: %d Events, want %d; the condition says %q", c.name, c.ip, events, c.events, says)
		}
	}
	if _, events := refusedTo(w, service.NewRefuser()); events != 0 {
		t.Errorf("the next term tells of it again")
	}
}

// TestLoadBalancerComesFirst: the address that a load balancer gives a Service is taken from an older Service that
// names it in spec.externalIPs, which is told so. It gets the address again when the load balancer gives that up.
func TestLoadBalancerComesFirst(t *testing.T) {
	w, r := newRefuser()
	w.SetService(asking("young", "192.0.2.7", 5))
	balanced := asking("balanced", "192.0.2.7", 0)
	balanced.ExternalIPs, balanced.LoadBalancer = nil, true
	for _, x := range []struct {
		ips  []netip.Addr
		says string
	}{
		{nil, ""},
		{[]netip.Addr{compiletest.V4(192, 0, 2, 7)}, "Service shop/balanced, whose load balancer has that address"},
		{nil, ""},
	} {
		s := *balanced
		s.LoadBalancerIPs = x.ips
		w.SetService(&s)
		says, _ := refusedTo(w, r)
		if (says == "") != (x.says == "") || !strings.Contains(says, x.says) {
			t.Errorf("the load balancer has %v: the condition says %q, want %q", x.ips, says, x.says)
		}
		if c := decide.Condition(w.Service("shop/balanced").Conditions, service.ConditionRefused); c.Status != "" {
			t.Errorf("the load balancer has %v: it is told %v", x.ips, c)
		}
	}
}

// term is a controller's term, a minute a decision, and what the API shows of Services.
type term struct {
	w     *world.World
	r     *service.Refuser
	now   time.Time
	shown map[string]*world.Service
}

func newTerm(before term) term {
	w, r := newRefuser()
	n := term{w, r, before.now, before.shown}
	for _, s := range before.shown {
		n.w.SetService(s)
	}
	return n
}

// show has the API show a Service with the status that it had.
func (x *term) show(s *world.Service) {
	if was := x.shown[s.Key()]; was != nil {
		s.Conditions = was.Conditions
	}
	x.shown[s.Key()] = s
	x.w.SetService(s)
}

// hide has the world forget a Service that is still there, as where a label says that another proxy serves it.
func (x *term) hide(s *world.Service) { x.w.DelService(s.Key()) }

// decide decides, and has the API show it. It returns which Services are recorded with which addresses.
func (x *term) decide() string {
	x.now = x.now.Add(time.Minute)
	refuse(x.r, x.w, x.now)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(x.shown)) {
		if s := x.w.Service(key); s != nil {
			x.shown[key] = s
			if c := decide.Condition(s.Conditions, world.ConditionServed); c.Status != "" {
				out = append(out, s.Name+" "+c.Message)
			}
		}
	}
	return strings.Join(out, "; ")
}

// TestServedAlreadyKeepsIt: an older Service that adds an address later does not take it from the one that has it,
// whichever controller decides, and is told so. The oldest gets it when that one gives it up, and keeps it then.
func TestServedAlreadyKeepsIt(t *testing.T) {
	x := newTerm(term{now: time.Unix(1e9, 0), shown: map[string]*world.Service{}})
	expect := func(step, want string) {
		t.Helper()
		if have := x.decide(); have != want {
			t.Errorf("%s: recorded: %s, want %s", step, have, want)
		}
	}
	ask := func(name, ip string, days int) { x.show(asking(name, ip, days)) }
	ask("young", "192.0.2.7", 0)
	expect("alone", "young 192.0.2.7:80/tcp")
	ask("old", "192.0.2.7", 1)
	ask("older", "192.0.2.7", 2)
	expect("older ones come", "young 192.0.2.7:80/tcp")
	said := decide.Condition(x.w.Service("shop/older").Conditions, service.ConditionRefused).Message
	if !strings.Contains(said, "is served for Service shop/young,") {
		t.Errorf("the oldest is told %q", said)
	}
	x = newTerm(x)
	expect("another controller leads", "young 192.0.2.7:80/tcp")
	ask("young", "192.0.2.8", 0)
	expect("it gives the address up", "older 192.0.2.7:80/tcp; young 192.0.2.8:80/tcp")
	ask("young", "192.0.2.7", 0)
	expect("and asks again", "older 192.0.2.7:80/tcp")
	x = newTerm(term{now: x.now, shown: map[string]*world.Service{}})
	for days, name := range []string{"young", "old", "older"} {
		ask(name, "192.0.2.7", days)
	}
	expect("nothing is recorded", "older 192.0.2.7:80/tcp")
}

// TestFormerRecord: a Service that Egret did not serve for a while comes back with its former record. It takes nothing
// from the Service that was recorded meanwhile, be it older, and its record follows.
func TestFormerRecord(t *testing.T) {
	x := newTerm(term{now: time.Unix(1e9, 0), shown: map[string]*world.Service{}})
	squatter, victim := asking("old", "192.0.2.7", 1), asking("young", "192.0.2.7", 0)
	victim.ExternalIPs = append(victim.ExternalIPs, compiletest.V4(192, 0, 2, 8))
	x.show(squatter)
	x.show(victim)
	if have := x.decide(); have != "old 192.0.2.7:80/tcp; young 192.0.2.8:80/tcp" {
		t.Fatal(have)
	}
	x.hide(squatter)
	if have := x.decide(); have != "young 192.0.2.7:80/tcp, 192.0.2.8:80/tcp" {
		t.Fatal(have)
	}
	x.show(squatter)
	f := world.Frontend{IP: compiletest.V4(192, 0, 2, 7), Protocol: "tcp", Port: 80}
	if first := x.w.First(f); first != "shop/young" {
		t.Errorf("the former one is back, and %s has the address", first)
	}
	if have := x.decide(); have != "young 192.0.2.7:80/tcp, 192.0.2.8:80/tcp" {
		t.Error(have)
	}
}

// TestLoadBalancerBeatsRecord: a record keeps an address from equals, and not from a load balancer's word.
func TestLoadBalancerBeatsRecord(t *testing.T) {
	x := newTerm(term{now: time.Unix(1e9, 0), shown: map[string]*world.Service{}})
	x.show(asking("named", "192.0.2.7", 9))
	x.decide()
	balanced := asking("balanced", "192.0.2.7", 0)
	balanced.LoadBalancerIPs, balanced.ExternalIPs = balanced.ExternalIPs, nil
	x.show(balanced)
	if have := x.decide(); have != "balanced 192.0.2.7:80/tcp" {
		t.Error(have)
	}
}

// TestNoTunnelsByServices: a Service leads nobody to the port of nodes' tunnels, on a node or on any other host, and is
// told so. A pod may have that port, and a host the same one of TCP.
func TestNoTunnelsByServices(t *testing.T) {
	for _, x := range []struct {
		protocol, at string
		refused      bool
	}{
		{"udp", "172.18.0.3:6081", true}, {"udp", "192.0.2.9:6081", true}, {"udp", "172.18.0.3:6082", false},
		{"tcp", "172.18.0.3:6081", false}, {"udp", "10.244.1.10:6081", false},
	} {
		w, r := compiletest.Small("n1", world.LocalGateway), service.NewRefuser()
		w.FollowChanges(r.NoteChanged)
		s := asking("young", "192.0.2.7", 0)
		s.ClusterIPs = []netip.Addr{compiletest.V4(10, 96, 0, 10)}
		s.Ports[0].Protocol, s.Ports[0].NodePort = x.protocol, 30081
		s.Ports[0].Endpoints = []world.Endpoint{{AddrPort: netip.MustParseAddrPort(x.at), Node: "n2", Ready: true}}
		w.SetService(s)
		says, _ := refusedTo(w, r)
		if told := strings.Contains(says, "which is that of nodes' tunnels"); told != x.refused {
			t.Errorf("%s %s: the condition says %q", x.protocol, x.at, says)
		}
		b := service.BackendsOf(&w.View, s, s.Ports[0], world.V4)
		if led := len(b.Cluster) > 0; led == x.refused {
			t.Errorf("%s %s gets connections: %t", x.protocol, x.at, led)
		}
	}
}

// TestRefusedForAnEgressIP: an address is refused as long as an EgressIP has a node for it, and no longer, whichever of
// the two comes first.
func TestRefusedForAnEgressIP(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.77")
	e := compiletest.EgressIP(0, "", ip)
	e.Items = []world.Assignment{{Node: "n1", IP: ip}}
	comes := []func(*world.World){
		func(w *world.World) { w.SetEgressIP(e) },
		func(w *world.World) { w.SetService(asking("young", ip.String(), 0)) },
	}
	for _, first := range []int{0, 1} {
		w, r := newRefuser()
		comes[first](w)
		r.Decide(decide.View{World: w})
		comes[1-first](w)
		if says, events := refusedTo(w, r); !strings.Contains(says, "of EgressIP e0") || events != 1 {
			t.Errorf("the condition says %q, with %d Events", says, events)
		}
		refusedTo(w, r)
		w.DelEgressIP("e0")
		if says, _ := refusedTo(w, r); says != "" {
			t.Errorf("the EgressIP is gone, and the condition says %q", says)
		}
	}
}

// TestRefusedEndpoints: what EndpointSlices name and nobody can be at is told of when it comes, and no more when it is
// gone; and it is told of, too, where it is more than anybody would write by hand.
func TestRefusedEndpoints(t *testing.T) {
	w, r := newRefuser()
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
		w.SetService(young(x.endpoints))
		if says, _ := refusedTo(w, r); (says == "") != (x.says == "") || !strings.Contains(says, x.says) {
			t.Errorf("%d endpoints: the condition says %q", x.endpoints, says)
		}
	}
}

// TestRefusedForTheAPIServer: no Service draws hosts' connections to an API server away, wherever that runs.
func TestRefusedForTheAPIServer(t *testing.T) {
	w, r := newRefuser()
	api := &world.Service{Namespace: "default", Name: "kubernetes",
		ClusterIPs: []netip.Addr{compiletest.V4(10, 96, 0, 1)},
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 443, Endpoints: []world.Endpoint{
			{AddrPort: netip.MustParseAddrPort("172.18.0.250:6443"), Ready: true}}}}}
	w.SetService(asking("young", "172.18.0.250", 0))
	if says, _ := refusedTo(w, r); says != "" {
		t.Fatalf("the condition says %q", says)
	}
	w.SetService(api)
	if says, _ := refusedTo(w, r); !strings.Contains(says, "172.18.0.250 is an address of an API server") {
		t.Errorf("the condition says %q", says)
	}
	if ips := service.External(&w.View, w.Service("shop/young"), w.Service("shop/young").Ports[0]); len(ips) > 0 {
		t.Errorf("it gets %v", ips)
	}
}

// TestRefusedAtNodes: a load balancer gives a Service ports of a node's address, and spec.externalIPs do where people
// let them; neither does what nodes listen at themselves. What changes beside the Service is followed.
func TestRefusedAtNodes(t *testing.T) {
	w, r := newRefuser()
	w.Config.NodeHealthPort = 20256
	w.Config.EncapPort = 16081
	at := compiletest.Primary(2)
	other := asking("other", "192.0.2.7", 1)
	other.Ports[0].NodePort = 20080
	api := &world.Service{Namespace: "default", Name: "kubernetes",
		ClusterIPs: []netip.Addr{compiletest.V4(10, 96, 0, 1)},
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 443, Endpoints: []world.Endpoint{
			{AddrPort: netip.AddrPortFrom(at, 443), Ready: true}}}}}
	w.SetService(other)
	w.SetService(api)
	for _, x := range []struct {
		balanced, let bool
		port          uint16
		says          string
	}{
		{false, false, 80, "172.18.0.3 is an address of node n2, and stays that"},
		{false, true, 80, ""}, {false, false, 22, "172.18.0.3 is an address of node n2"},
		{true, false, 80, ""}, {true, true, 80, ""}, {true, true, 53, ""},
		{true, true, 22, "172.18.0.3:22/tcp is on node n2 the port of SSH: use another"},
		{true, true, 6443, "the port of the API server"}, {false, true, 443, "the port of the API server"},
		{true, true, 2380, "the port of etcd"}, {true, true, 10250, "the port of the kubelet"},
		{true, true, 6081, "the port of nodes' tunnels"}, {true, true, 16081, "the port of nodes' tunnels"},
		{true, true, 20256, "the port of a load balancer's health check"},
		{true, true, 20080, "the port of a node port"}, {true, true, 32767, "the port of a node port"},
		{true, true, 9410, "the port of Egret's metrics"}, {false, true, 9411, ""},
	} {
		n := *compiletest.Recorded(2)
		n.LetsExternalIPs = x.let
		w.SetNode(&n)
		s := asking("young", at.String(), 0)
		if s.Ports[0].Port = x.port; x.balanced {
			s.LoadBalancerIPs, s.ExternalIPs = s.ExternalIPs, nil
		}
		w.SetService(s)
		says, _ := refusedTo(w, r)
		if (says == "") != (x.says == "") || !strings.Contains(says, x.says) {
			t.Errorf("%+v: the condition says %q", x, says)
		}
		if gets := len(service.External(&w.View, s, s.Ports[0])) > 0; gets != (x.says == "") {
			t.Errorf("%+v: it gets the address: %t", x, gets)
		}
	}
	w.SetNode(compiletest.Recorded(2))
	if says, _ := refusedTo(w, r); !strings.Contains(says, "annotate the node") {
		t.Errorf("people let it no longer, and the condition says %q", says)
	}
}
