package world_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// of lists the EgressServices of which a pod is an endpoint in a family.
func of(w *world.World, p *world.Pod, f world.Family) string {
	var names []string
	for _, s := range w.EgressServicesOf(p, f) {
		names = append(names, s.Key())
	}
	return strings.Join(names, " ")
}

// TestEgressServicesOf: by the endpoints of the Service, in order of age, and of the own namespace alone.
func TestEgressServicesOf(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	mine, other := compiletest.Pod(0, "n1"), compiletest.Pod(3, "n2") // both of ns0
	stranger := compiletest.Pod(1, "n1")
	for _, p := range []*world.Pod{mine, other, stranger} {
		w.SetPod(p)
	}
	w.SetService(compiletest.LoadBalancer(3, mine, stranger))
	w.SetService(compiletest.LoadBalancer(0, mine))
	expect := func(why, want string, p *world.Pod) {
		t.Helper()
		if have := of(w, p, world.V4); have != want {
			t.Errorf("%s: have %q, want %q", why, have, want)
		}
	}
	expect("a Service alone is none", "", mine)
	w.SetEgressService(compiletest.EgressService(3))
	w.SetEgressService(compiletest.EgressService(0))
	expect("the older one is first", "ns0/s0 ns0/s3", mine)
	expect("no endpoint of any", "", other)
	expect("an endpoint of another namespace's", "", stranger)
	w.SetService(compiletest.LoadBalancer(0, other))
	expect("it left one Service", "ns0/s3", mine)
	expect("it joined one", "ns0/s0", other)
	w.DelEgressService("ns0/s3")
	expect("the EgressService is gone", "", mine)
	w.DelService("ns0/s0")
	expect("the Service is gone", "", other)
	w.SetService(compiletest.LoadBalancer(0, other))
	expect("the Service is back", "ns0/s0", other)
}

// TestEgressServicesOfHeir: a pod that has got the address of one that was an endpoint is none itself, as long as a
// slice says that the address is the former one's.
func TestEgressServicesOfHeir(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	former := compiletest.Pod(0, "n1")
	heir := compiletest.Pod(3, "n1") // of the same namespace
	heir.IPs = former.IPs
	w.SetPod(former)
	service := func(pod string) *world.Service {
		s := compiletest.LoadBalancer(0, former)
		for i := range s.Ports[0].Endpoints {
			s.Ports[0].Endpoints[i].Pod = pod
		}
		return s
	}
	w.SetService(service(former.Name))
	w.SetEgressService(compiletest.EgressService(0))
	if have := of(w, former, world.V4); have != "ns0/s0" {
		t.Errorf("the endpoint is one of %q", have)
	}
	w.DelPod(former.Key())
	w.SetPod(heir)
	for _, c := range []struct{ says, want string }{
		{former.Name, ""}, {"", "ns0/s0"}, {"other/" + heir.Name, ""}, {heir.Name, "ns0/s0"}, {former.Name, ""},
	} {
		told := world.Entry{Kind: world.KindEgressServicesAt, Key: "ns0/" + heir.IPs[0].String()}
		changed := w.ChangesOf(func() { w.SetService(service(c.says)) })
		if !slices.Contains(changed, told) && c.says != former.Name {
			t.Errorf("who has read the endpoints is not told that they are %q's now", c.says)
		}
		if have := of(w, heir, world.V4); have != c.want {
			t.Errorf("the slice says %q: it is one of %q; want %q", c.says, have, c.want)
		}
	}
}

// TestEgressServicesSelect: a pod that no EndpointSlice names yet is one of those that the Service selects, in its
// families and namespace, as long as it does; whoever has read the pod is told.
func TestEgressServicesSelect(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	mine, stranger := compiletest.Pod(0, "n1"), compiletest.Pod(2, "n1") // both have app=web
	w.SetPod(mine)
	w.SetPod(stranger)
	service := func(app string) *world.Service {
		s := compiletest.LoadBalancer(0)
		s.Pods = labels.SelectorFromSet(labels.Set{"app": app})
		return s
	}
	told := world.Entry{Kind: world.KindPod, Key: mine.Key()}
	if w.SetService(service("web")); of(w, mine, world.V4) != "" {
		t.Error("a Service alone is an EgressService")
	}
	for _, c := range []struct {
		why    string
		change func()
		want   string
	}{
		{"it selects the pod", func() { w.SetEgressService(compiletest.EgressService(0)) }, "ns0/s0"},
		{"it selects others", func() { w.SetService(service("db")) }, ""},
		{"it selects the pod again", func() { w.SetService(service("web")) }, "ns0/s0"},
		{"the EgressService is gone", func() { w.DelEgressService("ns0/s0") }, ""},
		{"it is back", func() { w.SetEgressService(compiletest.EgressService(0)) }, "ns0/s0"},
		{"the Service is gone", func() { w.DelService("ns0/s0") }, ""},
	} {
		if touched := w.ChangesOf(c.change); !slices.Contains(touched, told) {
			t.Errorf("%s: the pod is not touched by %v", c.why, touched)
		}
		if v4, v6 := of(w, mine, world.V4), of(w, mine, world.V6); v4 != c.want || v6 != "" {
			t.Errorf("%s: have %q over IPv4, %q over IPv6", c.why, v4, v6)
		}
		if have := of(w, stranger, world.V4); have != "" {
			t.Errorf("%s: a pod of another namespace has %q", c.why, have)
		}
	}
}

// TestEgressServicesByFamily: an endpoint by one address is none by the other.
func TestEgressServicesByFamily(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	p := compiletest.Pod(0, "n1")
	only4 := *p
	only4.IPs = world.V4.OfAddrs(p.IPs)
	w.SetPod(p)
	w.SetService(compiletest.LoadBalancer(0, &only4))
	w.SetEgressService(compiletest.EgressService(0))
	if v4, v6 := of(w, p, world.V4), of(w, p, world.V6); v4 != "ns0/s0" || v6 != "" {
		t.Errorf("have %q over IPv4, %q over IPv6", v4, v6)
	}
	host := *p
	host.HostNetwork = true
	done := *p
	done.Completed = true
	if of(w, &host, world.V4) != "" || of(w, &done, world.V4) != "" {
		t.Error("a host-networked or completed pod counts")
	}
}

// TestEgressServiceOf: of those that are active the first, but none that nobody is ready for before one that is in
// force.
func TestEgressServiceOf(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(older, newer *world.EgressService, service *world.Service)
		want string
	}{
		"no host": {func(*world.EgressService, *world.EgressService, *world.Service) {}, ""},
		"both by age": {func(o, n *world.EgressService, _ *world.Service) {
			o.Host, n.Host = world.HostAll, world.HostAll
		}, "ns0/s0"},
		"in force before one that waits": {func(o, n *world.EgressService, _ *world.Service) {
			o.Host, o.Items = "n1", []world.Assignment{{Node: "n1", IP: compiletest.EgressAddr(20)[0]}}
			n.InForce[world.V4] = true
		}, "ns0/s3"},
		"waiting": {func(_, n *world.EgressService, _ *world.Service) {
			n.Host, n.Items = "n1", []world.Assignment{{Node: "n1", IP: compiletest.EgressAddr(23)[0]}}
		}, "ns0/s3"},
		"another type of Service": {func(o, n *world.EgressService, s *world.Service) {
			o.Host, n.Host, s.LoadBalancer = world.HostAll, world.HostAll, false
		}, "ns0/s3"},
	} {
		w := compiletest.Small("", world.SharedGateway)
		p := compiletest.Pod(0, "n1")
		w.SetPod(p)
		older, newer := compiletest.EgressService(0), compiletest.EgressService(3)
		service := compiletest.LoadBalancer(0, p)
		c.set(older, newer, service)
		w.SetService(service)
		w.SetService(compiletest.LoadBalancer(3, p))
		w.SetEgressService(older)
		w.SetEgressService(newer)
		have := ""
		if s := w.EgressServiceOf(p, world.V4); s != nil {
			have = s.Key()
		}
		if have != c.want {
			t.Errorf("%s: have %q, want %q", name, have, c.want)
		}
	}
}

// TestMostEgressServices: of one namespace the oldest are served, and others as soon as one of these goes; another
// namespace's are not concerned. Whoever reads of one is told.
func TestMostEgressServices(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	p := compiletest.Pod(0, "n1") // of ns0
	w.SetPod(p)
	set := func(age int) {
		s := compiletest.EgressService(3 * age) // of ns0
		lb := compiletest.LoadBalancer(3*age, p)
		lb.LoadBalancerIPs = nil
		w.SetService(lb)
		w.SetEgressService(s)
	}
	for age := range world.MaxEgressServices + 1 {
		set(age + 1)
	}
	youngest, last := fmt.Sprint("ns0/s", 3*(world.MaxEgressServices+1)), fmt.Sprint("ns0/s", 3*world.MaxEgressServices)
	w.SetEgressService(compiletest.EgressService(1000)) // of ns1
	expect := func(why string, change func(), key string, served bool) {
		t.Helper()
		changed := w.ChangesOf(change)
		if have := len(w.EgressServicesOf(p, world.V4)); have != world.MaxEgressServices {
			t.Errorf("%s: the pod is behind %d", why, have)
		}
		if have := w.EgressServiceServed(key); have != served {
			t.Errorf("%s: %s is served: %t", why, key, have)
		}
		if len(changed) > 0 && !slices.Contains(changed, world.Entry{Kind: world.KindEgressService, Key: key}) {
			t.Errorf("%s: nobody is told about %s: %v", why, key, changed)
		}
	}
	nothing := func() {}
	expect("one too many", nothing, youngest, false)
	expect("the last that is served", nothing, last, true)
	expect("of another namespace", nothing, "ns1/s1000", true)
	expect("an older one comes", func() { set(0) }, last, false)
	expect("the oldest goes", func() { w.DelEgressService("ns0/s0") }, last, true)
	expect("another goes", func() { w.DelEgressService("ns0/s3") }, youngest, true)
	w.DelEgressService(youngest)
	if n := len(w.EgressServicesOf(p, world.V4)); n != world.MaxEgressServices-1 {
		t.Errorf("the youngest has gone, and the pod is behind %d", n)
	}
}
