package plane_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"pgregory.net/rapid"
	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/announce"
	"github.com/egret-net/egret/internal/plane/conntrack"
	"github.com/egret-net/egret/internal/plane/flow"
	"github.com/egret-net/egret/internal/plane/forward"
	"github.com/egret-net/egret/internal/plane/health"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/route"
)

// targets are what outlives a process.
type targets struct {
	nb, sb       *ovn.Fake
	ovs          *ovs.Fake
	flow         *flow.Fake
	host         *route.FakeHost
	inet, netdev *knftables.Fake
	tables       *forward.Fake
	link         *announce.Fake
	connections  *tracked
	health       *health.Fake
	announced    int // by former processes
}

// tracked is a conntrack whose zone is known.
type tracked struct{ *conntrack.Fake }

const zone = 7

// patched is a switch whose ports are all there.
type patched struct{}

func (patched) OFPort(name string) (int, bool)               { return len(name), true }
func (patched) PatchInterface(bridge, network string) string { return bridge + "-" + network }

func newTargets() *targets {
	n := nft.NewFake()
	return &targets{
		nb: ovn.NewFake(), sb: ovn.NewFakeSB(), ovs: ovs.NewFake("br-int", "breth0", "br-egret-bfd"),
		flow: flow.NewFake(patched{}),
		host: route.NewFake().FakeHost, inet: n.INet, netdev: n.NetDev, tables: &forward.Fake{}, link: &announce.Fake{},
		health:      health.NewFake(),
		connections: &tracked{conntrack.NewFake(map[string]int{router + "_snat": zone})},
	}
}

// connect is a packet of a pod, translated by whatever rule there was.
func (s *targets) connect(t *rapid.T) { s.connections.Add(connection(t)) }

// meddle deletes something of ours, as somebody with a shell would.
func (s *targets) meddle(t *rapid.T) {
	switch rapid.IntRange(0, 7).Draw(t, "meddle with") {
	case 0:
		deleteOne(t, keys(s.nb.Held().NB), s.nb.Delete)
	case 1:
		deleteOne(t, keys(s.sb.Held().SB), s.sb.Delete)
	case 2:
		s.flow.Restart()
	case 3:
		deleteOne(t, keys(s.ovs.Held().Ports), s.ovs.DeletePort)
	case 4:
		deleteOne(t, slices.Collect(maps.Keys(s.host.Addrs)), func(k plan.Addr) { delete(s.host.Addrs, k) })
	case 5:
		deleteOne(t, slices.Collect(maps.Keys(s.host.Routes)), func(k plan.RouteKey) { delete(s.host.Routes, k) })
	case 6:
		s.tables.Rules = nil
	case 7:
		flush(rapid.SampledFrom([]*knftables.Fake{s.inet, s.netdev}).Draw(t, "table"))
	}
}

func keys[K comparable, V any](t plan.Table[K, V]) []K { return slices.Collect(maps.Keys(t)) }

func deleteOne[K any](t *rapid.T, all []K, del func(K)) {
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b K) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	del(rapid.SampledFrom(all).Draw(t, "what"))
}

// flush is `nft delete table`.
func flush(table *knftables.Fake) {
	tx := table.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	_ = table.Run(context.Background(), tx)
}

func (s *targets) writes() int {
	return s.nb.Writes() + s.sb.Writes() + s.ovs.Writes() + s.flow.Writes() + s.tables.Writes
}

// check compares every target with what it must hold.
func (s *targets) check(t *rapid.T, want *plan.State) {
	held := s.ovs.Held()
	held.NB, held.SetElems, held.SB = s.nb.Held().NB, s.nb.Held().SetElems, s.sb.Held().SB
	for k, a := range s.host.Addrs {
		held.Addrs.Put(plan.Owner{}, k, a.Spec)
	}
	for k, r := range s.host.Routes {
		held.Routes.Put(plan.Owner{}, k, r.Route)
	}
	for r := range s.host.Rules {
		held.Rules.Put(plan.Owner{}, r, plan.None{})
	}
	for k := range want.Sysctls.Rows() {
		held.Sysctls.Put(plan.Owner{}, k, s.host.Sysctls[k.Key])
	}
	for _, a := range s.link.Sent()[s.announced:] {
		if _, wanted := want.Announcements[a]; wanted { // what was announced cannot be taken back
			held.Announcements.Put(plan.Owner{}, a, plan.None{})
		}
	}
	// These three are held in another spelling, and are compared below.
	held.NFTChains, held.NFTRules, held.NFTSets, held.NFTElems = want.NFTChains, want.NFTRules, want.NFTSets,
		want.NFTElems
	held.Flows, held.Accepts = want.Flows, want.Accepts
	held.Sources, held.SourceExempt, held.Datagrams = want.Sources, want.SourceExempt, want.Datagrams
	held.Destinations, held.Masquerades = want.Destinations, want.Masquerades
	held.ReleasedAddrs = want.ReleasedAddrs
	// No target has these: the agent reports them.
	held.Steered, held.Translated = want.Steered, want.Translated
	held.Forwarded, held.Answered, held.Problems = want.Forwarded, want.Answered, want.Problems
	for port, spec := range s.health.Held() {
		held.HealthChecks.Put(plan.Owner{}, port, spec)
	}
	if have := plan.DiffText(want, held); have != "" {
		t.Fatalf("targets differ from the full compile (- missing, + too much):\n%s", have)
	}
	s.checkSpelled(t, want)
	s.checkConnections(t, want)
}

// checkSpelled compares with fresh targets that were only ever given want.
func (s *targets) checkSpelled(t *rapid.T, want *plan.State) {
	fresh := newTargets()
	p := fresh.start()
	defer p.stop()
	if err := plane.Apply(t.Context(), p.all(), want); err != nil {
		t.Fatal(err)
	}
	for name, texts := range map[string][2]string{
		"flows":      {strings.Join(s.flow.Lines(), "\n"), strings.Join(fresh.flow.Lines(), "\n")},
		"nft inet":   {tableText(s.inet), tableText(fresh.inet)},
		"nft netdev": {tableText(s.netdev), tableText(fresh.netdev)},
		"FORWARD v4": {rules(s.tables.Rules[false]), rules(fresh.tables.Rules[false])},
		"FORWARD v6": {rules(s.tables.Rules[true]), rules(fresh.tables.Rules[true])},
	} {
		if texts[0] != texts[1] {
			t.Fatalf("%s: have\n%s\nwant\n%s", name, texts[0], texts[1])
		}
	}
}

// tableText keeps the order of rules, and of nothing else.
func tableText(table *knftables.Fake) string {
	var ordered, rest []string
	for l := range strings.Lines(table.Dump()) {
		if strings.HasPrefix(l, "add rule") {
			ordered = append(ordered, l)
		} else {
			rest = append(rest, l)
		}
	}
	return rules(rest) + strings.Join(ordered, "")
}

func rules(l []string) string { return strings.Join(slices.Sorted(slices.Values(l)), "\n") }

// checkConnections: what is translated has the source that its pod now has.
func (s *targets) checkConnections(t *rapid.T, want *plan.State) {
	node := ownSources()
	for _, e := range s.connections.Entries() {
		sources, _ := want.Sources.Get(plan.Source{Router: router, Pod: e.Orig.Src})
		source, served := want.SourceOf(sources, e.Orig.Dst)
		_, exempt := want.SourceExempt.Get(e.Orig.Dst)
		right := node.Addrs
		if served && !exempt {
			right = []netip.Addr{source.IP}
		}
		if e.Translated() && !slices.Contains(right, e.Source()) {
			t.Fatalf("a connection of %s to %s has source %s, want one of %v", e.Orig.Src, e.Orig.Dst, e.Source(),
				right)
		}
	}
}
