package world_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/world"
)

// TestPodMTU: what pods' links have, by the uplink and --mtu, and when a node says that it cannot have that.
func TestPodMTU(t *testing.T) {
	for _, c := range []struct {
		uplink, asked int
		node          string
		want          int
		says          string
	}{
		{1500, 0, "172.18.0.2/16", 1400, ""},
		{9000, 0, "172.18.0.2/16", 8900, ""},
		{1500, 1300, "172.18.0.2/16", 1300, ""},
		{1500, 1442, "172.18.0.2/16", 1442, ""},
		{1500, 1443, "172.18.0.2/16", 1442, "give the uplink an MTU of 1501, or all nodes --mtu 1442"},
		{1500, 1442, "fd00::2/64", 1422, "the uplink's MTU 1500 carries 1422 bytes of pods, and --mtu asks for 1442"},
	} {
		config := &world.Config{MTU: c.asked}
		h := &world.Host{MTU: c.uplink, Primary: []netip.Prefix{netip.MustParsePrefix(c.node)}}
		if have := config.PodMTU(h); have != c.want {
			t.Errorf("%+v: have %d", c, have)
		}
		said := strings.Join(config.TooSmall(h), "; ")
		if !strings.Contains(said, c.says) || (said == "") != (c.says == "") {
			t.Errorf("%+v: said %q", c, said)
		}
	}
}
