package node

import (
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// TestBridgeAddress: the bridge has its uplink's hardware address, as far as both are there.
func TestBridgeAddress(t *testing.T) {
	const old, fresh = "02:00:00:00:00:01", "02:00:00:00:00:0a"
	bridge, uplink := route.Link{Name: "breth0", MAC: old}, route.Link{Name: "eth0", MAC: fresh}
	same := route.Link{Name: "eth0", MAC: old}
	for name, x := range map[string]struct {
		links []route.Link
		stale bool
	}{
		"another":   {[]route.Link{bridge, uplink}, true},
		"the same":  {[]route.Link{bridge, same}, false},
		"no bridge": {[]route.Link{uplink}, false},
		"no uplink": {[]route.Link{bridge}, false},
		"none":      {[]route.Link{bridge, {Name: "eth0"}}, false},
	} {
		mac, stale := bridgeAddress(route.Host{Links: x.links}, compiletest.Config(world.SharedGateway))
		if stale != x.stale || stale && mac != fresh {
			t.Errorf("%s: %s, stale %t", name, mac, stale)
		}
	}
}
