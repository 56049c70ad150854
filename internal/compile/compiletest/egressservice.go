package compiletest

import (
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/world"
)

// EgressService is EgressService ns<i%3>/s<i>, the i-th oldest, without a host.
func EgressService(i int) *world.EgressService {
	return &world.EgressService{Namespace: fmt.Sprint("ns", i%3), Name: fmt.Sprint("s", i), UID: fmt.Sprint("uid-s", i),
		Created: time.Unix(int64(2000+i), 0)}
}

// Crowd leaves room for one more EgressService in ns0.
func Crowd(w *world.World) {
	for i := range world.MaxEgressServices - 1 {
		s := EgressService(3 * i)
		s.Name, s.Created = fmt.Sprint("crowd", i), time.Unix(1, 0)
		w.SetEgressService(s)
	}
}

// LoadBalancer is the Service of EgressService(i), with the i-th egress address of each family and with pods as
// endpoints.
func LoadBalancer(i int, pods ...*world.Pod) *world.Service {
	s := &world.Service{Namespace: fmt.Sprint("ns", i%3), Name: fmt.Sprint("s", i), UID: fmt.Sprint("uid-lb", i),
		ClusterIPs: []netip.Addr{V4(10, 96, 1, i+1)}, LoadBalancer: true, LoadBalancerIPs: EgressAddr(20 + i),
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 80}}}
	for _, p := range pods {
		for _, ip := range p.IPs {
			s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, world.Endpoint{AddrPort: netip.AddrPortFrom(ip, 8080),
				Node: p.Node, Ready: true, Serving: true})
		}
	}
	return s
}

// DrawEgressService is an EgressService, or its Service, that comes, changes or goes.
func DrawEgressService(t *rapid.T) func(*world.World) {
	i := rapid.IntRange(0, 5).Draw(t, "which egress service")
	switch key := EgressService(i).Key(); rapid.IntRange(0, 7).Draw(t, "what of it") {
	case 0:
		return func(w *world.World) { w.DelEgressService(key) }
	case 1:
		return func(w *world.World) { w.DelService(key) }
	case 2, 3, 4:
		s := randomEgressService(t, i)
		return func(w *world.World) { w.SetEgressService(s) }
	}
	s := randomLoadBalancer(t, i)
	return func(w *world.World) { w.SetService(s) }
}

// randomLoadBalancer has some pods of its namespace, and at times one of another.
func randomLoadBalancer(t *rapid.T, i int) *world.Service {
	var pods []*world.Pod
	for j := range 6 {
		if j%3 == i%3 && rapid.IntRange(0, 3).Draw(t, "endpoint") > 0 || rapid.IntRange(0, 9).Draw(t, "stolen") == 0 {
			pods = append(pods, Pod(j, fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "endpoint's node"))))
		}
	}
	s := LoadBalancer(i, pods...)
	for j := range s.Ports[0].Endpoints {
		if onceIn(t, 3, "endpoint names a pod") {
			s.Ports[0].Endpoints[j].Pod = fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "pod"))
		}
		s.Ports[0].Endpoints[j].Ready = rapid.Bool().Draw(t, "ready")
	}
	s.Pods = rapid.SampledFrom([]labels.Selector{labels.Nothing(), labels.SelectorFromSet(labels.Set{"app": "web"}),
		labels.SelectorFromSet(labels.Set{"app": "db"})}).Draw(t, "pods behind")
	if onceIn(t, 4, "dual-stack") {
		s.ClusterIPs = append(s.ClusterIPs, world.Nth(netip.MustParsePrefix("fd00:10:96::/112"), 0x300+i))
	}
	s.LoadBalancer = rapid.IntRange(0, 4).Draw(t, "another type") > 0
	s.ExternalLocal = rapid.Bool().Draw(t, "external local")
	s.LoadBalancerIPs = s.LoadBalancerIPs[:rapid.IntRange(0, 2).Draw(t, "ingress IPs")]
	return s
}

// randomEgressService has been given a host, or none.
func randomEgressService(t *rapid.T, i int) *world.EgressService {
	s := EgressService(i)
	s.Table = rapid.SampledFrom([]world.RoutingTable{{}, {Number: 100}, {Name: "blue"}}).Draw(t, "table")
	s.DropWhenUnassigned = rapid.IntRange(0, 3).Draw(t, "drops without a host") == 0
	if rapid.IntRange(0, 3).Draw(t, "by network") == 0 {
		s.SourceIPBy, s.Host = world.SourceNetwork, world.HostAll
		return s
	}
	ips := EgressAddr(20 + i)
	for _, ip := range ips[:rapid.IntRange(0, 2).Draw(t, "source IPs")] {
		if s.Host == "" {
			s.Host = fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "host"))
		}
		s.Items = append(s.Items, world.Assignment{Node: s.Host, IP: ip})
	}
	for _, ip := range ips {
		if n := rapid.IntRange(0, 6).Draw(t, "host leaving"); n > 0 && n <= 3 && !s.Names(fmt.Sprint("n", n), ip) {
			s.Leaving = append(s.Leaving, world.Leaving{Node: fmt.Sprint("n", n), IP: ip})
		}
	}
	if onceIn(t, 5, "made anew") {
		s.Created = time.Unix(int64(2000+rapid.IntRange(0, 5).Draw(t, "age")), 0)
		s.UID += "again"
	}
	if rapid.Bool().Draw(t, "dated") {
		for _, it := range s.Items {
			s.Given = append(s.Given, drawGiven(t, it))
		}
	}
	s.InForce = [2]bool{rapid.Bool().Draw(t, "s v4 in force"), rapid.Bool().Draw(t, "s v6 in force")}
	return s
}
