package trace_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// forwarded is a packet that comes to n1's host by a link and goes on to the uplink.
var forwarded = trace.Packet{Src: netip.MustParseAddr("172.19.1.99"), Dst: netip.MustParseAddr("172.18.0.100"),
	Proto: "tcp", DstPort: 80}

// TestChains: base chains are passed by hook and priority, each to its end or to a verdict; jump comes back, goto does
// not.
func TestChains(t *testing.T) {
	base := func(priority string) plan.NFTChainSpec {
		return plan.NFTChainSpec{Type: "filter", Hook: "forward", Priority: priority}
	}
	closed := base("5")
	closed.Policy = "drop"
	for _, x := range []struct {
		name   string
		chains chains
		rules  []string // "CHAIN RULE", in order
		want   string
	}{
		{"return", chains{"c": base("5"), "a": {}}, []string{"c jump a", "a return", "a drop"}, "outside"},
		{"jump", chains{"c": base("5"), "a": {}}, []string{"c jump a", "c drop"}, "dropped at n1: host rule drop"},
		{"goto", chains{"c": base("5"), "a": {}}, []string{"c goto a", "c drop"}, "outside"},
		{"goto within a jump", chains{"c": base("5"), "a": {}, "b": {}},
			[]string{"c jump a", "c counter drop", "a goto b", "a drop"}, "dropped at n1: host rule counter drop"},
		{"accept", chains{"c": base("5")}, []string{"c accept", "c drop"}, "outside"},
		{"accept where it jumped", chains{"c": base("5"), "a": {}}, []string{"c jump a", "c drop", "a accept"},
			"outside"},
		{"accept ends one chain", chains{"c": base("5"), "d": base("6")}, []string{"c accept", "d drop"}, "dropped"},
		{"policy", chains{"c": closed}, nil, "dropped at n1: policy of the chain inet c"},
		{"accept and policy", chains{"c": closed}, []string{"c accept"}, "outside"},
		{"loop", chains{"c": base("5"), "a": {}}, []string{"c jump a", "a jump a"}, "dropped at n1: a loop of chains"},
		{"before", chains{"z": base("-7"), "d": base("6")}, []string{"z meta mark set 0x5", "d meta mark 0x5 drop"},
			"dropped"},
		{"after", chains{"a": base("filter + 7"), "d": base("6")},
			[]string{"a meta mark set 0x5", "d meta mark 0x5 drop"}, "outside"},
		{"by the link", chains{"c": base("5")}, []string{`c iifname != "eth1" drop`, `c iifname "eth1" drop`},
			`dropped at n1: host rule iifname "eth1" drop`},
		{"change before a condition", chains{"c": base("5")},
			[]string{"c meta mark set 0x5 th dport 81 drop", "c meta mark & 0x4 0x4 drop"}, "dropped"},
		{"translated before a filter of the hook", chains{
			"t": {Type: "nat", Hook: "postrouting", Priority: "300"},
			"f": {Type: "filter", Hook: "postrouting", Priority: "200"},
		}, []string{"t snat ip to 1.2.3.4", "f ip saddr 1.2.3.4 drop"},
			"dropped at n1: host rule ip saddr 1.2.3.4 drop"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newCluster(world.SharedGateway).plans()
			for name, spec := range x.chains {
				s["n1"].NFTChains.Put(plan.Owner{}, plan.NFTChain{Family: "inet", Name: name}, spec)
			}
			for i, text := range x.rules {
				name, rule, _ := strings.Cut(text, " ")
				id := plan.NFTRule{Chain: plan.NFTChain{Family: "inet", Name: name}, Name: plan.Itoa(i)}
				s["n1"].NFTRules.Put(plan.Owner{}, id, rule)
			}
			ends := read(t, s).WalkIntoHost("n1", "eth1", forwarded)
			if got := trace.Sentences(ends); !strings.HasPrefix(got, x.want) {
				t.Errorf("%s, want %s\n%v", got, x.want, ends[0].Steps)
			}
		})
	}
}

// TestNamesOfChainsMeanNothing: with other names, in another order, the chains of all features do the same.
func TestNamesOfChainsMeanNothing(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		c := newCluster(mode)
		c.egressIP(nil, "n2", "n3")
		own, renamed := c.plans(), c.plans()
		for _, s := range renamed {
			rename(s)
		}
		for _, dst := range []string{"172.18.0.100", "172.18.0.4", "10.96.0.1"} {
			for _, src := range []string{pod0, pod1} {
				p := trace.Packet{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst), Proto: "tcp",
					DstPort: 443}
				want, have := trace.Sentences(read(t, own).Walk(p)), trace.Sentences(read(t, renamed).Walk(p))
				if have != want {
					t.Errorf("%s, %s to %s: %s, and with other names %s", mode, src, dst, want, have)
				}
			}
		}
	}
}

// rename gives a plan's chains names in the opposite order.
func rename(s *plan.State) {
	names := map[plan.NFTChain]plan.NFTChain{}
	var old []string
	for c := range s.NFTChains.Rows() {
		old = append(old, c.Name)
	}
	slices.Sort(old)
	for c := range s.NFTChains.Rows() {
		names[c] = plan.NFTChain{Family: c.Family, Name: plan.Itoa(len(old) - slices.Index(old, c.Name))}
	}
	chains, rules := plan.Table[plan.NFTChain, plan.NFTChainSpec]{}, plan.Table[plan.NFTRule, string]{}
	for c, spec := range maps.All(maps.Collect(s.NFTChains.Rows())) {
		chains.Put(plan.Owner{}, names[c], spec)
	}
	for r, text := range s.NFTRules.Rows() {
		rules.Put(plan.Owner{}, plan.NFTRule{Chain: names[r.Chain], Name: r.Name}, text)
	}
	s.NFTChains, s.NFTRules = chains, rules
}

// TestEveryWorldIsRead: what all features compile, in both modes and for each family, the tracer knows. It says nothing
// of where packets go.
func TestEveryWorldIsRead(t *testing.T) {
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, families := range [][]int{{0}, {1}, {0, 1}} {
			c := newCluster(mode)
			c.each(func(w *world.World) {
				w.Config.ClusterSubnets = pick(compiletest.Config(mode).ClusterSubnets, families)
				w.SetService(webService())
			})
			c.egressIP(func(e *world.EgressIP) {
				for i, ip := range slices.Concat(compiletest.EgressAddr(0), compiletest.SecondaryAddr(0)) {
					e.IPs = append(e.IPs, ip)
					e.Items = append(e.Items, world.Assignment{Node: []string{"n2", "n3"}[i%2], IP: ip})
				}
			}, "n2", "n3")
			plans := c.plans()
			read(t, plans)
			membersHaveSets(t, plans)
		}
	}
}

// TestEveryBigWorldIsRead: so does a node with a thousand EgressIPs.
func TestEveryBigWorldIsRead(t *testing.T) {
	read(t, trace.Network{"n1": compile.Full(compiletest.Big(), all.Features())})
}

// TestEveryRandomWorldIsRead: so does what is compiled of objects that lie, contradict each other or come and go.
func TestEveryRandomWorldIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]world.GatewayMode{world.SharedGateway, world.LocalGateway}).Draw(t, "mode")
		w := compiletest.Small("n1", mode)
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			compiletest.Change(t, w)
		}
		if _, err := trace.Read(trace.Network{"n1": compile.Full(w, all.Features())}); err != nil {
			t.Fatal(err)
		}
	})
}

// membersHaveSets: nobody adds an address to a set of OVN that the node does not have.
func membersHaveSets(t *testing.T, plans trace.Network) {
	t.Helper()
	for node, s := range plans {
		for m := range s.SetElems.Rows() {
			if _, is := s.NB[plan.RowID{Table: "Address_Set", Name: m.Set}]; !is {
				t.Errorf("%s: %s is a member of %s, which is not there", node, m.Addr, m.Set)
			}
		}
	}
}

func pick[T any](all []T, indexes []int) []T {
	var out []T
	for _, i := range indexes {
		out = append(out, all[i])
	}
	return out
}
