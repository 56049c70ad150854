package world_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestFirst: whatever Services come, change and go, who gets an address and port is whose cluster IP it is, else the
// oldest, and a change of that touches who has asked.
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
			touched := change(t, w, addr)
			for _, f := range asked {
				now := w.First(f)
				if want := firstOf(w, f); now != want {
					t.Fatalf("%v: %q is first, want %q", f, now, want)
				}
				is := slices.Contains(touched, world.Touch{Kind: world.KindFrontend, Key: f.String()})
				if now != last[f] && !is {
					t.Fatalf("%v: %q is first, was %q, and nobody hears of it", f, now, last[f])
				}
				last[f] = now
			}
		}
	})
}

// change makes, changes or deletes one of four Services.
func change(t *rapid.T, w *world.World, addr func(int) netip.Addr) []world.Touch {
	name := fmt.Sprint("s", rapid.IntRange(0, 3).Draw(t, "which"))
	if rapid.Bool().Draw(t, "deleted") {
		return w.DelService("a/" + name)
	}
	s := &world.Service{Namespace: "a", Name: name, UID: name,
		Created:    time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "age")), 0),
		ClusterIPs: []netip.Addr{addr(rapid.SampledFrom([]int{0, 9}).Draw(t, "cluster IP"))}}
	for i := range 3 {
		if rapid.Bool().Draw(t, "external") {
			s.ExternalIPs = append(s.ExternalIPs, addr(i))
		}
	}
	for port := range uint16(2) {
		if rapid.Bool().Draw(t, "port") {
			s.Ports = append(s.Ports, world.ServicePort{Protocol: "tcp", Port: port + 1})
		}
	}
	return w.SetService(s)
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
		return 1
	}
	return slices.MinFunc(all, func(a, b *world.Service) int {
		return cmp.Or(other(a)-other(b), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
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
	for _, change := range []func() []world.Touch{
		func() []world.Touch { return w.SetService(asks("b", 16)) },
		func() []world.Touch { return w.SetService(asks("b", 17)) },
		func() []world.Touch { return w.DelService("a/b") },
	} {
		for _, x := range change() {
			if x.Kind == world.KindFrontend {
				t.Fatalf("%v is touched", x)
			}
		}
	}
	n := 0
	for _, x := range w.SetService(asks("a", 18)) {
		if x.Kind == world.KindFrontend {
			n++
		}
	}
	if n != 16 {
		t.Errorf("a new port at 16 addresses touches %d of them", n)
	}
}
