package zone_test

import (
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestTunnelSettings: --encap-port and --mtu get into everything that they are about.
func TestTunnelSettings(t *testing.T) {
	w := compiletest.Small("n1", world.LocalGateway)
	w.Config.EncapPort, w.Config.MTU = 6082, 1300
	s := compile.Full(w, all.Features())
	encap, _ := s.SB.Get(plan.RowID{Table: "Encap", Name: compiletest.Node(2).ChassisID})
	if o, _ := encap.Cols["options"].(map[string]string); o["dst_port"] != "6082" {
		t.Errorf("OVN's tunnel to n2: %v", encap)
	}
	port, found := s.Ports.Get(plan.Port{Bridge: plan.LivenessBridge, Name: plan.LivenessPort(3)})
	if !found || !strings.Contains(port.Options, "dst_port=6082") {
		t.Errorf("the session's tunnel to n2: %v", port)
	}
	management, _ := s.Ports.Get(plan.Port{Bridge: plan.IntegrationBridge, Name: "ovn-k8s-mp0"})
	if management.MTU != 1300 {
		t.Errorf("management port: %v", management)
	}
	router, _ := s.NB.Get(plan.RowID{Table: "Logical_Router_Port", Name: "rtoj-GR_n1"})
	if o, _ := router.Cols["options"].(map[string]string); o["gateway_mtu"] != "1300" {
		t.Errorf("gateway router: %v", router)
	}
}
