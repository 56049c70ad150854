package service_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestEndpointsAddNoRows: a Service of many pods is as many load balancers, flows and rules as one of two.
func TestEndpointsAddNoRows(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, local := range []bool{false, true} {
			few, many := rows(mode, local, 2), rows(mode, local, 200)
			if few != many {
				t.Errorf("%s, policy Local %t: 2 endpoints are %+v, 200 are %+v", mode, local, few, many)
			}
		}
	}
}

type counts struct{ nb, flows, rules int }

func rows(mode world.GatewayMode, local bool, endpoints int) counts {
	w := compiletest.Small("n1", mode)
	s := &world.Service{
		Namespace: "shop", Name: "web", ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")},
		LoadBalancerIPs: compiletest.EgressAddr(70)[:1], ExternalLocal: local,
		Ports: []world.ServicePort{{Protocol: "tcp", Port: 80, NodePort: 30080}},
	}
	for i := range endpoints {
		node := 1 + i%3
		s.Ports[0].Endpoints = append(s.Ports[0].Endpoints, world.Endpoint{
			AddrPort: netip.AddrPortFrom(compiletest.PodIPs(i, node)[0], 8080), Node: compiletest.Node(node).Name,
			Ready: true, Serving: true,
		})
	}
	w.SetService(s)
	p := compile.Full(w, all.Features())
	return counts{size(p.NB), size(p.Flows), size(p.NFTRules)}
}

func size[K comparable, V any](t plan.Table[K, V]) (n int) {
	for range t.Rows() {
		n++
	}
	return n
}
