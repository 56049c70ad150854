package explain_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/explain"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/featuretest"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

func TestScripts(t *testing.T) { featuretest.Run(t) }

// withService is a large cluster with a Service whose endpoints are pods of many nodes.
func withService(nodes int) (*world.World, string, trace.Packet) {
	w := compiletest.Big()
	for i := 1; i <= 500; i++ {
		n := compiletest.BigNode(i)
		n.UplinkMAC, _ = world.ParseHardwareAddr(fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255))
		w.SetNode(n)
	}
	at := netip.MustParseAddr("10.96.0.77")
	s := &world.Service{Namespace: "many", Name: "s", UID: "s", ClusterIPs: []netip.Addr{at}}
	port := world.ServicePort{Protocol: "tcp", Port: 80}
	from, seen := "", map[string]bool{}
	for i := 0; len(seen) < nodes; i++ {
		p := compiletest.BigPod(i)
		if from = p.Key(); seen[p.Node] {
			continue
		}
		seen[p.Node] = true
		port.Endpoints = append(port.Endpoints, world.Endpoint{AddrPort: netip.AddrPortFrom(p.IPs[0], 80), Node: p.Node,
			Ready: true})
	}
	s.Ports = []world.ServicePort{port}
	w.SetService(s)
	return w, from, trace.Packet{Dst: at, Proto: "tcp", DstPort: 80}
}

// TestManyEndpoints: each endpoint of a Service is an end, and where there are too many, that is said.
func TestManyEndpoints(t *testing.T) {
	w, pod, p := withService(40)
	a, err := explain.Ask(all.ServedKinds(), w, pod, p)
	if err != nil || len(a.Ends) < 40 || strings.Contains(fmt.Sprint(a.Ends), "dropped") {
		t.Errorf("%v: %d ends: %v", err, len(a.Ends), a.Ends)
	}
	w, pod, p = withService(100)
	if _, err := explain.Ask(all.ServedKinds(), w, pod, p); err == nil || !strings.Contains(err.Error(),
		"ask about the address") {
		t.Errorf("100 nodes: %v", err)
	}
}

func BenchmarkAsk(b *testing.B) {
	w, pod, p := withService(60)
	for b.Loop() {
		if _, err := explain.Ask(all.ServedKinds(), w, pod, p); err != nil {
			b.Fatal(err)
		}
	}
}
