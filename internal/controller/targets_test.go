package controller

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestTargetsCostWhatIsProbed: which nodes to probe is asked for at each change of an EgressService, and makes
// addresses of those alone.
func TestTargetsCostWhatIsProbed(t *testing.T) {
	made := func(nodes int) float64 {
		config := compiletest.Config(world.SharedGateway)
		config.ClusterSubnets[0].CIDR = netip.MustParsePrefix("10.0.0.0/8")
		w := world.New("", config)
		for i := 1; i <= nodes; i++ {
			n := bigNode(i, 5)
			n.Ready = true
			w.SetNode(n)
		}
		if have := fmt.Sprint(len(probeTargets(w, "n9", ""))); have != "5" {
			t.Errorf("%s of %d nodes are probed, want the 5 egress nodes", have, nodes)
		}
		return testing.AllocsPerRun(5, func() { probeTargets(w, "n9", "") })
	}
	if few, many := made(50), made(1000); many > 2*few {
		t.Errorf("%v allocations for 1,000 nodes, and %v for 50", many, few)
	}
}
