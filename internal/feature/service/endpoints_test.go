package service_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/world"
)

// backend is an endpoint as a table writes it: "name node conditions [node hints] [zone hints]". Names are those of
// addresses below.
func backend(text string) world.Endpoint {
	words := strings.Fields(text)
	ip := map[string]netip.Addr{
		"a": compiletest.PodIPs(0, 1)[0], "b": compiletest.PodIPs(1, 2)[0], "c": compiletest.PodIPs(2, 3)[0],
		"host": compiletest.Primary(1), "far": netip.MustParseAddr("192.0.2.1"),
		"vip": netip.MustParseAddr("10.96.0.9"), "join": netip.MustParseAddr("100.64.0.2"),
		"six": compiletest.PodIPs(0, 1)[1],
	}[words[0]]
	e := world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 80), Node: strings.Trim(words[1], "-")}
	switch words[2] {
	case "ready":
		e.Ready, e.Serving = true, true
	case "ending":
		e.Serving, e.Terminating = true, true
	case "gone":
		e.Terminating = true
	}
	for _, hint := range words[3:] {
		if node, ok := strings.CutPrefix(hint, "node="); ok {
			e.ForNodes = append(e.ForNodes, node)
		} else {
			e.ForZones = append(e.ForZones, strings.TrimPrefix(hint, "zone="))
		}
	}
	return e
}

// TestBackends is seen from n1, in zone east.
func TestBackends(t *testing.T) {
	w := compiletest.Small("n1", world.SharedGateway)
	n := *w.Node("n1")
	n.Labels = map[string]string{"topology.kubernetes.io/zone": "east"}
	w.SetNode(&n)
	for _, x := range []struct {
		name      string
		endpoints []string
		want      string // internal, cluster, local pods, local host
	}{
		{"ready ones", []string{"a n1 ready", "b n2 not", "c n3 ready"}, "a c | a c | a |"},
		{"not ready and not ending", []string{"a n1 not"}, "| | |"},
		{"ending ones count where none is ready", []string{"a n1 ending", "b n2 ending", "c n3 gone"},
			"a b | a b | a |"},
		{"and only there", []string{"a n1 ending", "b n2 ready"}, "b | b | a |"},
		{"on the host", []string{"host n1 ready", "a n1 ready"}, "host a | host a | a | host"},
		{"ending, on the host", []string{"host n1 ending", "a n1 ready"}, "a | a | a |"},
		{"hand-made, without a node", []string{"a - ready", "b - ready", "host - ready", "far - ready"},
			"a b host far | a b host far | a | host"},
		{"said to be here, with an address that is not", []string{"far n1 ready", "b n1 ready"}, "far b | far b | |"},
		{"where nobody can be", []string{"vip - ready", "join n1 ready", "a n1 ending"}, "a | a | a |"},
		{"another family", []string{"six n1 ready", "a n1 ready"}, "a | a | a |"},
		{"zone hints", []string{"a n1 ready zone=east", "b n2 ready zone=west", "c n3 ready zone=east"},
			"a c | a c | a |"},
		{"zone hints, one without", []string{"a n1 ready zone=east", "b n2 ready"}, "a b | a b | a |"},
		{"zone hints, none for here", []string{"b n2 ready zone=west"}, "b | b | |"},
		{"hints of an endpoint that is not ready", []string{"a n1 not zone=east", "b n2 ready zone=west"}, "b | b | |"},
		{"node hints come first", []string{"a n1 ready node=n1 zone=east", "b n2 ready node=n2 zone=east"},
			"a | a | a |"},
		{"node hints for others", []string{"b n2 ready node=n2 zone=east", "c n3 ready node=n3 zone=west"},
			"b | b | |"},
		{"hints when all are ending", []string{"a n1 ending zone=west", "b n2 ending zone=west"}, "a b | a b | a |"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := &world.Service{Namespace: "shop", Name: "web", ExternalLocal: true}
			p := world.ServicePort{Protocol: "tcp", Port: 80}
			for _, text := range x.endpoints {
				p.Endpoints = append(p.Endpoints, backend(text))
			}
			b := service.BackendsOf(&w.View, s, p, world.V4)
			if have, want := said(b), x.want; have != want {
				t.Errorf("have %s\nwant %s", have, want)
			}
			s.InternalLocal = true
			local := append(b.LocalHost, b.LocalPods...)
			b, again := service.BackendsOf(&w.View, s, p, world.V4), service.BackendsOf(&w.View, s, p, world.V4)
			if len(b.Internal) != len(local) || names(b.Cluster) != names(again.Cluster) {
				t.Errorf("internal traffic policy Local: %s", said(b))
			}
		})
	}
}

func said(b service.Backends) string {
	var out []string
	for _, l := range [][]world.Endpoint{b.Internal, b.Cluster, b.LocalPods, b.LocalHost} {
		out = append(out, names(l))
	}
	return strings.TrimSpace(strings.Join(strings.Fields(strings.Join(out, " | ")), " "))
}

func names(l []world.Endpoint) string {
	var out []string
	for _, e := range l {
		for _, name := range []string{"a", "b", "c", "host", "far", "vip", "join"} {
			if backend(name+" - -").Addr() == e.Addr() {
				out = append(out, name)
			}
		}
	}
	return strings.Join(out, " ")
}

// TestEndpointsNowhere: an endpoint that nobody can have is said to be one. One outside of all the cluster's subnets is
// a host somewhere else, and served.
func TestEndpointsNowhere(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	p := world.ServicePort{Protocol: "tcp", Port: 80, Endpoints: []world.Endpoint{backend("a - ready"),
		backend("far - ready"), backend("host - ready"), backend("vip - ready"), backend("join - ready")}}
	stale := backend("a - ready")
	stale.AddrPort = netip.MustParseAddrPort("10.244.200.7:80")
	s := &world.Service{Namespace: "shop", Name: "web", Ports: []world.ServicePort{p}}
	s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, stale)
	w.SetService(s)
	want := []string{
		"endpoint 10.96.0.9 is inside 10.96.0.0/16, which is for cluster IPs: it gets no connections, name pods or " +
			"hosts",
		"endpoint 100.64.0.2 is inside 100.64.0.0/16, which is between the cluster's routers: it gets no " +
			"connections, name pods or hosts",
		"endpoint 10.244.200.7 is inside 10.244.0.0/16, which is for pods, and in no node's part of it: connections " +
			"to it get no answer, take it out",
	}
	if have := decide.Messages(service.Refusals(&w.View, s)); have != strings.Join(want, "; ") {
		t.Errorf("have %s\nwant %s", have, strings.Join(want, "; "))
	}
}

// TestRefusals says it in words that help.
func TestRefusals(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	s := &world.Service{
		Namespace: "shop", Name: "young", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.2")},
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 80, NodePort: 30080}, {Protocol: "tcp", Port: 81}},
		ExternalIPs: []netip.Addr{netip.MustParseAddr("172.18.0.200"), compiletest.Primary(2), compiletest.PodIPs(0,
			1)[0], netip.MustParseAddr("10.96.0.9"), netip.MustParseAddr("100.64.0.2")},
		Problems: []string{"spec.externalIPs: \"x\""},
	}
	s.Created = s.Created.Add(1)
	w.SetService(s)
	w.SetService(&world.Service{Namespace: "shop", Name: "old", ExternalIPs: s.ExternalIPs[:1], Ports: s.Ports[:1]})
	want := []string{
		`spec.externalIPs: "x"`,
		"172.18.0.200:80/tcp is served for Service shop/old, which comes first: give one of them another address " +
			"or port",
		"172.18.0.3 is an address of node n2, and stays that: use a node port, or another address, or have an " +
			"administrator annotate the node with egret.k8s.ovn.org/external-ips=true",
		"10.244.1.10 is inside 10.244.0.0/16, which is for pods: use an address of no such subnet",
		"10.96.0.9 is inside 10.96.0.0/16, which is for cluster IPs: use an address of no such subnet",
		"100.64.0.2 is inside 100.64.0.0/16, which is between the cluster's routers: use an address of no such subnet",
		"node port 30080/tcp is served for Service shop/old, which comes first: give one of them another address " +
			"or port",
	}
	if have := decide.Messages(service.Refusals(&w.View, s)); have != strings.Join(want, "; ") {
		t.Errorf("have %s\nwant %s", have, strings.Join(want, "; "))
	}
	w.DelService("shop/old")
	if have := service.Refusals(&w.View, s); len(have) != len(want)-2 {
		t.Errorf("without the older one: %s", decide.Messages(have))
	}
}

// TestAddressOfEgressIP: an address that an EgressIP has, or once had a node for, is no Service's until it is given up.
func TestAddressOfEgressIP(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	ip := compiletest.EgressAddr(0)[0]
	e := compiletest.EgressIP(0, "", ip)
	e.Items, e.Granted = []world.Assignment{{Node: "n2", IP: ip}}, []netip.Addr{ip}
	s := &world.Service{Namespace: "shop", Name: "web", ExternalIPs: []netip.Addr{ip},
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 80}}}
	w.SetService(s)
	w.SetEgressIP(e)
	gap := *e
	gap.Items = nil
	want := ip.String() + " is an address of EgressIP e0, and stays that: take it out of that, or use another address"
	for name, e := range map[string]*world.EgressIP{"with a node": e, "without one": &gap} {
		w.SetEgressIP(e)
		if have := decide.Messages(service.Refusals(&w.View, s)); have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
	w.SetEgressIP(compiletest.EgressIP(0, "", ip))
	if have := service.Refusals(&w.View, s); len(have) != 0 {
		t.Errorf("given up: %s", decide.Messages(have))
	}
}
