package world_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/egret-net/egret/internal/world"
)

func TestParseClusterSubnets(t *testing.T) {
	v4, v6 := netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:10:244::/48")
	for in, want := range map[string][]world.ClusterSubnet{
		"10.244.0.0/16/24, fd00:10:244::/48/64": {{CIDR: v4, NodeLen: 24}, {CIDR: v6, NodeLen: 64}},
		"10.244.3.0/16":                         {{CIDR: v4, NodeLen: 24}},
		"10.244.0.0/16/26":                      {{CIDR: v4, NodeLen: 26}},
		"":                                      nil,
		"10.244.0.0/16/8":                       nil,
		"10.244.0.0/16/31":                      nil,
		"10.244.0.0/16/x":                       nil,
		"10.244.0.0":                            nil,
	} {
		have, err := world.ParseClusterSubnets(in)
		if (err != nil) != (want == nil) || !reflect.DeepEqual(have, want) {
			t.Errorf("%q: have %v, %v, want %v", in, have, err, want)
		}
	}
}
