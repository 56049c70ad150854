package handover

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestLeavingHasRoomInTheSchema: a host that moves 40 times before any of its former nodes may go has 32 of them in its
// status. The one that holds the address now, by what the API shows, is among them, and so are the youngest.
func TestLeavingHasRoomInTheSchema(t *testing.T) {
	w, now, ip := world.New("", &world.Config{}), time.Unix(1_000_000, 0), netip.MustParseAddr("192.0.2.7")
	var names []string
	is, shown := &world.Placement{}, &world.Placement{}
	for i := range 42 {
		n := fmt.Sprintf("n%02d", i)
		names = append(names, n)
		w.SetNode(&world.Node{Name: n, UID: n, Ready: true})
		l := world.Leaving{Node: n, IP: ip, Since: now.Add(time.Duration(i) * time.Millisecond)}
		switch {
		case i < 34:
			is.Leaving, shown.Leaving = append(is.Leaving, l), append(shown.Leaving, l)
		case i == 34:
			is.Leaving, shown.Items = append(is.Leaving, l), []world.Assignment{{Node: n, IP: ip}}
		case i < 40:
			is.Leaving = append(is.Leaving, l)
		}
	}
	is.Items = []world.Assignment{{Node: "n40", IP: ip}}
	none := func(*world.View, *world.Pod) []ServedBy { return nil }
	r := Round{World: w, W: &w.View, Served: NewServed(NewPods(), none), Names: names, Now: now.Add(time.Second)}
	o := Object{Object: ref.Of(ref.EgressService, "shop/s"), Is: is, Shown: shown,
		Has: func(netip.Addr) bool { return true }}
	left, _ := r.Leaving(o, []world.Assignment{{Node: "n41", IP: ip}})
	var have []string
	for _, l := range left {
		have = append(have, l.Node)
	}
	if want := names[3:35]; !slices.Equal(have, want) {
		t.Errorf("leaving are %d: %v, want %v", len(have), have, want)
	}
}
