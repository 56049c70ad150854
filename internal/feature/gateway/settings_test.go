package gateway_test

import (
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestSettingsOfAVLAN: the dot in the name of a VLAN's bridge is no separator of the setting's path.
func TestSettingsOfAVLAN(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		w := compiletest.Small("n1", mode)
		w.Config.Bridge = "brbond0.100"
		s := compile.Full(w, all.Features())
		if _, found := s.Sysctls.Get(plan.Sysctl{Key: "net.ipv4.conf.brbond0/100.forwarding"}); !found {
			t.Errorf("%v: the bridge does not forward", mode)
		}
		for k := range s.Sysctls.Rows() {
			if k.Key == "net.ipv4.conf.brbond0.100.forwarding" {
				t.Errorf("%v: %s is no setting", mode, k.Key)
			}
		}
	}
}
