package service_test

import (
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestFormerEndpointsOfSCTP: connections of UDP and SCTP to endpoints that have gone end, in OVN and on the host; TCP
// ends its own.
func TestFormerEndpointsOfSCTP(t *testing.T) {
	w := compiletest.Small("n1", world.LocalGateway)
	for number, node := range map[int]string{0: "n1", 1: "n2"} {
		w.SetPod(compiletest.Pod(number, node))
	}
	w.SetService(matrixService(localPod, false))
	s := compile.Full(w, all.Features())
	rows := map[plan.Datagram]int{}
	for d := range s.Datagrams.Rows() {
		rows[plan.Datagram{Protocol: d.Protocol, OVN: d.OVN}]++
	}
	for _, ovn := range []bool{true, false} {
		for protocol, want := range map[string]bool{"udp": true, "sctp": true, "tcp": false} {
			if n := rows[plan.Datagram{Protocol: protocol, OVN: ovn}]; n > 0 != want {
				t.Errorf("by OVN %t: %d rows of %s", ovn, n, protocol)
			}
		}
	}
	for id, row := range s.NB.Rows() {
		cols := row.Cols
		if id.Table != "Load_Balancer" {
			continue
		}
		flush := cols["options"].(map[string]string)["ct_flush"] == "true"
		if flush != (cols["protocol"] != "tcp") {
			t.Errorf("%s: options %v", id, cols["options"])
		}
	}
}
