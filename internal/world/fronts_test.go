package world_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// fronting is a Service that asks for addresses times ports.
func fronting(namespace string, age, addresses, ports int) *world.Service {
	s := &world.Service{Namespace: namespace, Name: fmt.Sprint("s", age), UID: fmt.Sprint(age),
		Created: time.Unix(int64(age), 0)}
	for i := range addresses {
		s.ExternalIPs = append(s.ExternalIPs, compiletest.V4(192, 0, 2, i))
	}
	for i := range ports {
		s.Ports = append(s.Ports, world.ServicePort{Protocol: "tcp", Port: uint16(i + 1)})
	}
	return s
}

// TestFronts: whatever Services come, change and go, those may be served beside cluster IPs whose older ones of the
// namespace ask for fewer than MaxFronts; no other is first of anything. Everybody hears of each change.
func TestFronts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world.New("", compiletest.Config(world.SharedGateway))
		f := world.Frontend{IP: compiletest.V4(192, 0, 2, 0), Protocol: "tcp", Port: 1}
		was, first := map[string]bool{}, map[string]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			s := fronting(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"),
				rapid.IntRange(0, 5).Draw(t, "age"), rapid.IntRange(0, 4).Draw(t, "addresses"),
				rapid.SampledFrom([]int{1, 400, 1024}).Draw(t, "ports"))
			heard := map[world.Entry]bool{}
			for _, x := range w.ChangesOf(func() {
				w.SetService(s)
				if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
					w.DelService(s.Key())
					delete(was, s.Key())
					delete(first, s.Key())
				}
			}) {
				heard[x] = true
			}
			for _, key := range w.Services() {
				s := w.Service(key)
				may, is := w.Fronts(s), w.IsFirst(f, key)
				if want := olderFronts(w, s) < world.MaxFronts; may != want && len(s.ExternalIPs) > 0 {
					t.Fatalf("%s may be served: %t, want %t", key, may, want)
				}
				if is && !may {
					t.Fatalf("%s is first, and may not be served", key)
				}
				if (may != was[key]) && !heard[world.Entry{Kind: world.KindService, Key: key}] {
					t.Fatalf("%s may be served: %t, and nobody hears of it", key, may)
				}
				if is != first[key] && !heard[world.Entry{Kind: world.KindIsFirst, Key: f.String() + " " + key}] {
					t.Fatalf("%s is first: %t, and nobody hears of it", key, is)
				}
				was[key], first[key] = may, is
			}
		}
	})
}

// olderFronts is what older Services of a namespace ask for.
func olderFronts(w *world.World, s *world.Service) (n int) {
	for _, key := range w.Services() {
		if o := w.Service(key); o.Namespace == s.Namespace && o.Created.Before(s.Created) {
			n += len(o.ExternalIPs) * len(o.Ports)
		}
	}
	return n
}
