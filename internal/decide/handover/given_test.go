package handover_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestGiven: what stays, or comes back from leaving, stays as it was given; what is new is given later than anything
// that is known, though the clock was set back.
func TestGiven(t *testing.T) {
	a, b, c := at("n1", "172.18.0.1"), at("n2", "172.18.0.2"), at("n3", "172.18.0.3")
	is := world.Placement{Items: []world.Assignment{a, b}, Given: []world.Given{{Assignment: a, Since: 50}},
		Leaving: []world.Leaving{{Node: c.Node, IP: c.IP, Given: 70}}}
	for _, x := range []struct {
		name  string
		items []world.Assignment
		now   int64
		want  []ref.Since // of items; 0: nobody says
	}{
		{"all stay", []world.Assignment{a, b}, 100, []ref.Since{50, 0}},
		{"a controller of before gave it, another is gone", []world.Assignment{b}, 100, []ref.Since{0}},
		{"back from leaving", []world.Assignment{b, c}, 100, []ref.Since{0, 70}},
		{"new", []world.Assignment{a, at("n4", "172.18.0.2")}, 100, []ref.Since{50, 100}},
		{"new, the clock was set back", []world.Assignment{at("n4", "172.18.0.1"), b}, 60, []ref.Since{71, 0}},
		{"none", nil, 100, nil},
	} {
		given := world.Placement{Items: x.items, Given: handover.Given(&is, is.Items, x.items, time.UnixMicro(x.now))}
		var have []ref.Since
		for _, i := range x.items {
			have = append(have, given.Since(i))
		}
		if !slices.Equal(have, x.want) {
			t.Errorf("%s: have %v, want %v", x.name, have, x.want)
		}
	}
}

func at(node, ip string) world.Assignment {
	return world.Assignment{Node: node, IP: netip.MustParseAddr(ip)}
}
