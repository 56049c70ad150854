package plane_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// step is a plane that notes when it shrinks.
type step struct {
	name   string
	fails  error
	shrunk *[]string
}

func (s step) Name() string                            { return s.name }
func (s step) Grow(context.Context, *plan.State) error { return nil }
func (s step) Forget()                                 {}

func (s step) Shrink(context.Context, *plan.State) error {
	*s.shrunk = append(*s.shrunk, s.name)
	return s.fails
}

// TestShrinkGoesOn: a plane that does not shrink keeps back what it leads packets to, and what that leads packets to,
// and nothing else.
func TestShrinkGoesOn(t *testing.T) {
	away := errors.New("does not answer")
	for _, c := range []struct {
		fails  string
		shrunk []string
	}{
		{"", []string{"connections", "nb", "flow", "accepts", "nft", "routes"}},
		{"connections", []string{"connections", "nb", "flow", "accepts", "nft", "routes"}},
		{"nb", []string{"connections", "nb", "accepts", "routes"}},
		{"flow", []string{"connections", "nb", "flow", "accepts", "routes"}},
		{"nft", []string{"connections", "nb", "flow", "accepts", "nft", "routes"}},
	} {
		var shrunk []string
		at := func(name string, traits ...plane.Trait) plane.Plane {
			s := step{name: name, shrunk: &shrunk}
			if name == c.fails {
				s.fails = away
			}
			return plane.For(plan.InNB, s, traits...)
		}
		err := plane.Shrink(t.Context(), []plane.Plane{
			at("routes", plane.After()), at("nft", plane.After()), at("accepts", plane.After()),
			at("flow", plane.After("nft")), at("nb", plane.After("flow")),
			at("connections", plane.After(), plane.Unawaited),
		}, plan.New())
		if !slices.Equal(shrunk, c.shrunk) || errors.Is(err, away) != (c.fails != "") {
			t.Errorf("where %q does not shrink, these do: %v, want %v; error %v", c.fails, shrunk, c.shrunk, err)
		}
		if left := (*plane.Leftover)(nil); errors.As(err, &left) != (c.fails == "connections") ||
			plane.OnlyRefusals(err) != (c.fails == "" || c.fails == "connections") {
			t.Errorf("where %q does not shrink: %v", c.fails, err)
		}
	}
}

// TestAllWaitForPlanesWithoutTraits: who says nothing of the order is waited for by all before it.
func TestAllWaitForPlanesWithoutTraits(t *testing.T) {
	var shrunk []string
	last := step{"last", errors.New("does not answer"), &shrunk}
	first := plane.For(plan.InNB, step{"first", nil, &shrunk}, plane.After())
	err := plane.Shrink(t.Context(), []plane.Plane{first, last}, plan.New())
	if err == nil || !slices.Equal(shrunk, []string{"last"}) {
		t.Errorf("asked to shrink: %v; error %v", shrunk, err)
	}
}
