package egressservice_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestRowsDoNotGrow: a thousand endpoints are elements of sets, and no rows, flows or rules, on the host and where pods
// run, whatever decides about their source and route.
func TestRowsDoNotGrow(t *testing.T) {
	for name, s := range kinds() {
		for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
			for _, self := range []string{"n1", "n2"} {
				t.Run(fmt.Sprintf("%s, %s gateway, %s", name, mode, self), func(t *testing.T) {
					few, many := withEndpoints(t, s, mode, self, 10), withEndpoints(t, s, mode, self, 1000)
					for table, n := range rowsOf(many) {
						if before := rowsOf(few)[table]; n != before {
							t.Errorf("%d %s with 10 endpoints, and %d with 1000", before, table, n)
						}
					}
					// a node's own pods have two addresses
					if few, many := elements(few), elements(many); many-few < 2*198 {
						t.Errorf("%d elements of sets with 10 endpoints, and %d with 1000", few, many)
					}
				})
			}
		}
	}
}

// kinds are EgressServices in force: by the Service's addresses with n1 as the host, by a routing table there, too, and
// by a table of all nodes.
func kinds() map[string]world.EgressService {
	address := *compiletest.EgressService(0)
	table, network := address, address
	address.Host, address.InForce = "n1", [2]bool{true, true}
	for _, ip := range first {
		address.Items = append(address.Items, world.Assignment{Node: "n1", IP: ip})
	}
	table.Host, table.InForce, table.Items = address.Host, address.InForce, address.Items
	table.Table = world.RoutingTable{Name: "blue"}
	network.SourceIPBy, network.Host, network.Table = world.SourceNetwork, world.HostAll, table.Table
	return map[string]world.EgressService{"address": address, "address and network": table, "network": network}
}

// withEndpoints is the plan of a node with so many endpoints in both families, evenly on five nodes. All nodes have the
// table, and n1 says that it holds the addresses.
func withEndpoints(t *testing.T, s world.EgressService, mode world.GatewayMode, self string, number int) *plan.State {
	t.Helper()
	w := compiletest.Small(self, mode)
	h := *compiletest.Host(self)
	h.Tables = []world.HostTable{{ID: 100, Default: [2]bool{true, true}, Names: []string{"blue"}}}
	w.SetHost(&h)
	for i := 1; i <= 5; i++ {
		w.SetNode(compiletest.Node(i))
	}
	var pods []*world.Pod
	for i := range number {
		p := compiletest.Pod(0, fmt.Sprint("n", 1+i%5))
		p.Namespace, p.Name, p.UID = s.Namespace, fmt.Sprint("p", i), fmt.Sprint("uid-", i)
		p.IPs = compiletest.PodIPs(i/5, 1+i%5)
		w.SetPod(p)
		pods = append(pods, p)
	}
	service := compiletest.LoadBalancer(0, pods...)
	service.Namespace, service.Name = s.Namespace, s.Name
	w.SetService(service)
	w.SetEgressService(&s)
	w.SetHolding(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{s.Key(): first}})
	return compile.Full(w, all.Features())
}

func rowsOf(s *plan.State) map[string]int {
	return map[string]int{"rows of the Northbound": len(s.NB), "flows": len(s.Flows), "nft chains": len(s.NFTChains),
		"nft rules": len(s.NFTRules), "nft sets": len(s.NFTSets), "ip rules": len(s.Rules), "routes": len(s.Routes),
		"nodes steered to": len(s.Steered), "problems": len(s.Problems)}
}

func elements(s *plan.State) int { return len(s.SetElems) + len(s.NFTElems) }

// mostName is what the nftables plane takes as a name: nft(8) has 128 bytes for a comment, and a hash is among them.
const mostName = 110

// TestNamesFit: names in nftables are short enough however long those of the EgressService are.
func TestNamesFit(t *testing.T) {
	for kind, s := range kinds() {
		for _, length := range []int{1, 39, 63} { // 80 characters with the slash are the most that are not shortened
			s.Namespace, s.Name = strings.Repeat("s", length), strings.Repeat("n", min(length+1, 63))
			t.Run(fmt.Sprintf("%s, %d", kind, len(s.Key())), func(t *testing.T) {
				state := withEndpoints(t, s, world.LocalGateway, "n1", 10)
				for r := range state.NFTRules {
					if len(r.Name) > mostName {
						t.Errorf("rule %q has %d characters", r.Name, len(r.Name))
					}
				}
				for set := range state.NFTSets {
					if len(set.Name) > mostName {
						t.Errorf("set %q has %d characters", set.Name, len(set.Name))
					}
				}
			})
		}
	}
}
