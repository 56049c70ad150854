package world_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/egret-net/egret/internal/world"
)

// TestAsHasTheOtherNodesPods: what is compiled as another node is of the pods there, by the table as well as by name,
// and this node's own stay where they are.
func TestAsHasTheOtherNodesPods(t *testing.T) {
	w := world.New("n1", &world.Config{})
	ip := netip.MustParseAddr("10.244.2.9")
	w.SetPod(&world.Pod{Namespace: "shop", Name: "there", UID: "1", Node: "n2", IPs: []netip.Addr{ip}})
	w.SetPod(&world.Pod{Namespace: "shop", Name: "starting", UID: "2", Node: "n2"})
	w.SetAttachment(&world.Attachment{Namespace: "shop", Name: "here", UID: "3"})
	other := w.As("n2")
	if have := other.Keys(world.KindAttachment); !slices.Equal(have, []string{"shop/there"}) {
		t.Errorf("n2 has the ports of %v, want shop/there alone", have)
	}
	if a := other.Attachment("shop/there"); a == nil || a.MAC != world.MAC(ip) {
		t.Errorf("the port of shop/there is %+v", a)
	}
	if have := w.Keys(world.KindAttachment); !slices.Equal(have, []string{"shop/here"}) {
		t.Errorf("this node has the ports of %v, want shop/here alone", have)
	}
}
