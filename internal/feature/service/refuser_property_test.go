package service_test

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature/service"
	"github.com/egret-net/egret/internal/world"
)

// TestRefusesAsFromNothing: to look at what has changed alone says what it says to look at everything.
func TestRefusesAsFromNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := compiletest.Small("", world.SharedGateway)
		some, r := newRefuser()
		now := time.Unix(1e9, 0)
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				change := drawConcerning(t, all)
				change(all)
				change(some)
			}
			refuse(r, some, now)
			refuse(service.NewRefuser(), all, now)
			now = now.Add(time.Second)
			for _, key := range all.Services() {
				if a, b := all.Service(key).Conditions, some.Service(key).Conditions; !world.SameConditions(a, b) {
					t.Fatalf("%s is\n%+v, want\n%+v", key, b, a)
				}
			}
		}
	})
}

func refuse(r decide.Decider, w *world.World, now time.Time) {
	desired, _ := r.Decide(decide.View{World: w, Now: now})
	for _, d := range desired {
		w.Decide(d.Kind, d.Key, d.Decision)
	}
}

// drawConcerning is a change; most are of EgressIPs, and of Services that ask for their addresses or name endpoints
// that are no pod's.
func drawConcerning(t *rapid.T, w *world.World) func(*world.World) {
	i := rapid.IntRange(0, 2).Draw(t, "which")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return compiletest.Draw(t, w)
	case 1, 2:
		e := compiletest.EgressIP(i, "", compiletest.EgressAddr(i)...)
		if rapid.Bool().Draw(t, "placed") {
			e.Items = []world.Assignment{{Node: "n1", IP: e.IPs[0]}}
		}
		return func(w *world.World) { w.SetEgressIP(e) }
	}
	s := compiletest.RandomService(t, i)
	s.ExternalIPs = compiletest.EgressAddr(i)[:rapid.IntRange(0, 1).Draw(t, "addresses of an EgressIP")]
	if rapid.Bool().Draw(t, "asks for what others ask for") {
		s.ExternalIPs = append(s.ExternalIPs, compiletest.V4(192, 0, 2, 7))
	}
	s.Created = time.Unix(int64(rapid.IntRange(1, 3).Draw(t, "age")), 0)
	if rapid.Bool().Draw(t, "an endpoint that is no pod's") {
		strange := netip.AddrPortFrom(compiletest.V4(10, 244, 99, 9), 80)
		s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, world.Endpoint{AddrPort: strange, Ready: true})
	}
	return func(w *world.World) { w.SetService(s) }
}
