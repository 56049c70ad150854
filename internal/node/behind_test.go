package node

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// TestBehind: objects have a problem while the node holds their addresses and its targets have failed for a minute.
func TestBehind(t *testing.T) {
	held := map[world.EgressAddress]ref.Since{}
	for _, ip := range []string{"172.18.0.33", "fc00:f853:ccd:e793::33"} {
		held[world.EgressAddress{Object: "prod", IP: netip.MustParseAddr(ip)}] = 0
	}
	b, now, fails := behind{}, time.Unix(1000, 0), errors.New("nft hangs")
	for i, x := range []struct {
		after time.Duration
		o     Outcome
		want  int
	}{
		{0, Outcome{Err: fails}, 0},
		{59 * time.Second, Outcome{Left: fails}, 0},
		{time.Second, Outcome{Err: fails}, 1},
		{time.Second, Outcome{}, 0},
		{time.Second, Outcome{Err: fails}, 0},
		{time.Minute, Outcome{Err: fails}, 1},
	} {
		now = now.Add(x.after)
		have := b.problemsOf(held, x.o, now)
		if len(have) != x.want || x.want == 1 && have[0].Object != ref.OfKey("prod") {
			t.Errorf("%d: %v, want %d", i, have, x.want)
		}
	}
}
