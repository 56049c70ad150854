package world_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestFirst: whatever Services come, change and go, an address and port goes to the Service whose cluster IP it is,
// else to one whose load balancer has it; of equals to the one that is recorded with it, the latest record first, else
// to the oldest. A change of that touches all that have asked.
func TestFirst(t *testing.T) {
	addr := func(i int) netip.Addr { return compiletest.V4(192, 0, 2, i) }
	rapid.Check(t, func(t *rapid.T) {
		w := world.New("", compiletest.Config(world.SharedGateway))
		asked := []world.Frontend{}
		for i := range 3 {
			for port := range uint16(2) {
				asked = append(asked, world.Frontend{IP: addr(i), Protocol: "tcp", Port: port + 1})
			}
		}
		last := map[world.Frontend]string{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			touched := w.ChangesOf(func() { change(t, w, addr) })
			for _, f := range asked {
				now := w.First(f)
				if want := firstOf(w, f); now != want {
					t.Fatalf("%v: %q is first, want %q", f, now, want)
				}
				is := slices.Contains(touched, world.Entry{Kind: world.KindFrontend, Key: f.String()})
				if now != last[f] && !is {
					t.Fatalf("%v: %q is first, was %q, and nobody hears of it", f, now, last[f])
				}
				last[f] = now
			}
		}
	})
}

// change makes, changes or deletes one of four Services.
func change(t *rapid.T, w *world.World, addr func(int) netip.Addr) {
	name := fmt.Sprint("s", rapid.IntRange(0, 3).Draw(t, "which"))
	if rapid.Bool().Draw(t, "deleted") {
		w.DelService("a/" + name)
		return
	}
	s := &world.Service{Namespace: "a", Name: name, UID: name,
		Created:    time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "age")), 0),
		ClusterIPs: []netip.Addr{addr(rapid.SampledFrom([]int{0, 9}).Draw(t, "cluster IP"))}}
	for i := range 3 {
		if rapid.Bool().Draw(t, "external") {
			s.ExternalIPs = append(s.ExternalIPs, addr(i))
		}
		if rapid.IntRange(0, 3).Draw(t, "balanced") == 0 {
			s.LoadBalancerIPs = append(s.LoadBalancerIPs, addr(i))
		}
	}
	for port := range uint16(2) {
		if rapid.Bool().Draw(t, "port") {
			s.Ports = append(s.Ports, world.ServicePort{Protocol: "tcp", Port: port + 1})
		}
	}
	if at := rapid.IntRange(0, 3).Draw(t, "recorded"); at > 0 {
		var list []world.Frontend
		for i := range 3 {
			for port := range uint16(2) {
				if rapid.Bool().Draw(t, "recorded with it") {
					list = append(list, world.Frontend{IP: addr(i), Protocol: "tcp", Port: port + 1})
				}
			}
		}
		s.Conditions = []world.Condition{recorded(time.Unix(int64(at), 0), list...)}
	}
	w.SetService(s)
}

// recorded is the controller's record of what a Service gets.
func recorded(since time.Time, list ...world.Frontend) world.Condition {
	return world.Condition{Type: world.ConditionServed, Status: "True", Message: world.FormatServed(list), Since: since}
}

// since is when a Service was recorded with an address and port; zero: it was not.
func since(s *world.Service, f world.Frontend) (at time.Time) {
	for _, c := range s.Conditions {
		if slices.Contains(strings.Split(c.Message, ", "), f.String()) {
			at = c.Since
		}
	}
	return at
}

func firstOf(w *world.World, f world.Frontend) string {
	var all []*world.Service
	for _, key := range w.Services() {
		if s := w.Service(key); slices.Contains(s.Frontends(), f) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return ""
	}
	other := func(s *world.Service) int {
		if slices.Contains(s.ClusterIPs, f.IP) {
			return 0
		}
		if slices.Contains(s.LoadBalancerIPs, f.IP) {
			return 1
		}
		return 2
	}
	return slices.MinFunc(all, func(a, b *world.Service) int {
		return cmp.Or(other(a)-other(b), since(b, f).Compare(since(a, f)), a.Created.Compare(b.Created),
			cmp.Compare(a.Name, b.Name))
	}).Key()
}

// TestAskingInVain: one of many Services that ask for the same in vain touches nobody with that, whatever it does.
func TestAskingInVain(t *testing.T) {
	w := world.New("", compiletest.Config(world.SharedGateway))
	asks := func(name string, ports int) *world.Service {
		s := &world.Service{Namespace: "a", Name: name, UID: name}
		for i := range 16 {
			s.ExternalIPs = append(s.ExternalIPs, compiletest.V4(192, 0, 2, i))
		}
		for i := range ports {
			s.Ports = append(s.Ports, world.ServicePort{Protocol: "tcp", Port: uint16(i + 1)})
		}
		return s
	}
	w.SetService(asks("a", 17))
	for _, change := range []func(){
		func() { w.SetService(asks("b", 16)) },
		func() { w.SetService(asks("b", 17)) },
		func() { w.DelService("a/b") },
	} {
		for _, x := range w.ChangesOf(change) {
			if x.Kind == world.KindFrontend {
				t.Fatalf("%v is touched", x)
			}
		}
	}
	n := 0
	for _, x := range w.ChangesOf(func() { w.SetService(asks("a", 18)) }) {
		if x.Kind == world.KindFrontend {
			n++
		}
	}
	if n != 16 {
		t.Errorf("a new port at 16 addresses touches %d of them", n)
	}
}

// TestRecord: a record keeps an address and port for a Service against an older one, as long as the Service asks for
// it. A record that is garbled, or that has no time, only leaves the order of age.
func TestRecord(t *testing.T) {
	ip, at := compiletest.V4(192, 0, 2, 7), time.Unix(100, 0)
	f := world.Frontend{IP: ip, Protocol: "tcp", Port: 80}
	v6 := world.Frontend{IP: netip.MustParseAddr("2001:db8::7"), Protocol: "sctp", Port: 65535}
	long := slices.Repeat([]world.Frontend{{IP: v6.IP, Protocol: "udp", Port: 1}}, 10_000)
	for i := range long {
		long[i].Port = uint16(i + 1000)
	}
	with := func(message, status string, since time.Time) world.Condition {
		return world.Condition{Type: world.ConditionServed, Status: status, Message: message, Since: since}
	}
	for name, x := range map[string]struct {
		record world.Condition
		keeps  bool
	}{
		"recorded":          {recorded(at, f), true},
		"the second":        {recorded(at, v6, f), true},
		"the last":          {recorded(at, append(long[:511:511], f)...), true},
		"one too many":      {recorded(at, append(long[:512:512], f)...), false},
		"garbled around it": {with("?, , [::]:, 192.0.2.7:80/tcp, x/tcp", "True", at), true},
		"another port":      {with("192.0.2.7:81/tcp", "True", at), false},
		"another protocol":  {with("192.0.2.7:80/udp", "True", at), false},
		"no protocol":       {with("192.0.2.7:80", "True", at), false},
		"no list":           {with("192.0.2.7:80/tcp;192.0.2.8:80/tcp", "True", at), false},
		"not true":          {with("192.0.2.7:80/tcp", "False", at), false},
		"no time":           {with("192.0.2.7:80/tcp", "True", time.Time{}), false},
		"nothing":           {with("", "True", at), false},
		"another condition": {world.Condition{Type: "x", Status: "True", Message: f.String(), Since: at}, false},
	} {
		w := world.New("", compiletest.Config(world.SharedGateway))
		asks := func(name string, created int64, port uint16, conditions ...world.Condition) {
			w.SetService(&world.Service{Namespace: "a", Name: name, UID: name, Created: time.Unix(created, 0),
				ExternalIPs: []netip.Addr{ip}, Ports: []world.ServicePort{{Protocol: "tcp", Port: port}},
				Conditions: conditions})
		}
		asks("young", 2, 80, x.record)
		asks("old", 1, 80)
		if keeps := w.First(f) == "a/young"; keeps != x.keeps {
			t.Errorf("%s: the younger Service has the address: %t", name, keeps)
		}
		asks("young", 2, 81, x.record)
		if first := w.First(f); first != "a/old" {
			t.Errorf("%s: nobody else asks, and %s has it", name, first)
		}
	}
	if n := len(world.FormatServed(long)); n > 30<<10 {
		t.Errorf("a record has %d bytes", n)
	}
}
