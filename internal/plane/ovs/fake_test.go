package ovs

import (
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func TestFakeConformance(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		f := NewFake("br-int")
		return &planetest.Rig{
			New: func(*testing.T) plane.Plane { return f },
			A:   stateA(), B: stateB(), Bad: bad(), BadOwner: planetest.Owner("bad"),
			Hostile: hostile(), Monitored: true,
			Writes:      f.Writes,
			Dump:        func(*testing.T) string { return f.Held().Text() },
			Text:        func(s *plan.State) string { return s.Text() },
			PutForeign:  func(*testing.T) { f.PutForeign("theirs") },
			DumpForeign: func(*testing.T) string { return strings.Join(f.Foreign(), " ") },
			DeleteOurs:  func(*testing.T) { f.DeletePort(plan.Port{Bridge: "br-int", Name: "mp0"}) },
		}
	})
}
