package nft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func openPlane(t testing.TB) *Plane {
	t.Helper()
	planetest.OwnNetns(t)
	p, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t *testing.T, p plane.Plane, s *plan.State) error {
	t.Helper()
	return plane.Apply(t.Context(), []plane.Plane{p}, s)
}

func state(rows map[string]*plan.Rows) *plan.State {
	s := plan.New()
	for owner, r := range rows {
		s.Replace(planetest.Owner(owner), &plan.Rows{}, r)
	}
	return s
}

func chainRows(spec plan.NFTChainSpec, rules ...string) *plan.Rows {
	r := &plan.Rows{NFTChains: map[plan.NFTChain]plan.NFTChainSpec{inetChain("pre"): spec}}
	for _, name := range rules {
		plan.Add(&r.NFTRules, plan.NFTRule{Chain: inetChain("pre"), Name: name}, "ip saddr 192.0.2.1 accept")
	}
	return r
}

var prerouting = plan.NFTChainSpec{Type: "filter", Hook: "prerouting", Priority: "mangle"}

func TestKernelHoldsWhatWasAsked(t *testing.T) {
	p := openPlane(t)
	fatal(t, apply(t, p, stateB()))
	have := strings.Join(strings.Fields(nftList(t)), " ")
	for _, want := range []string{
		"set pods6 { type ipv6_addr elements = { fd00::1 } }",
		"set nets { type ipv4_addr flags interval elements = { 192.0.2.0/25, 192.0.2.128/25, 198.51.100.7 } }",
		"chain pre { type filter hook prerouting priority mangle; policy accept; ip saddr @pods jump marking",
		"meta mark set ip saddr map @marks comment",
	} {
		if !strings.Contains(have, want) {
			t.Errorf("%q is missing from\n%s", want, nftList(t))
		}
	}
}

// ruleOrder is the names of the rules of chain pre, as the kernel runs them.
func ruleOrder(t *testing.T, p *Plane) string {
	t.Helper()
	rules, err := p.inet.nft.ListRules(t.Context(), "pre")
	fatal(t, err)
	var names []string
	for _, r := range rules {
		name, _, _ := strings.Cut(*r.Comment, " #")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func TestRulesStandInOrderOfName(t *testing.T) {
	p := openPlane(t)
	for _, names := range [][]string{{"c", "f"}, {"a", "b", "c", "d", "e", "f", "g"}, {"d"}, {"c", "d", "x"},
		{"a", "b", "d", "z"}} {
		fatal(t, apply(t, p, state(map[string]*plan.Rows{"o": chainRows(prerouting, names...)})))
		if have := ruleOrder(t, p); have != strings.Join(names, " ") {
			t.Fatalf("order is %q, want %q", have, names)
		}
	}
}

func TestChangedRuleKeepsItsPlace(t *testing.T) {
	p := openPlane(t)
	rows := chainRows(prerouting, "a", "c", "d")
	fatal(t, apply(t, p, state(map[string]*plan.Rows{"o": rows})))
	rows = chainRows(prerouting, "a", "b", "c", "d")
	rows.NFTRules[plan.NFTRule{Chain: inetChain("pre"), Name: "c"}] = "ip saddr 192.0.2.2 drop"
	fatal(t, apply(t, p, state(map[string]*plan.Rows{"o": rows})))
	if have := ruleOrder(t, p); have != "a b c d" {
		t.Errorf("order is %q", have)
	}
	if l := nftList(t); strings.Count(l, "192.0.2.2 drop") != 1 || strings.Count(l, "192.0.2.1 accept") != 3 {
		t.Errorf("the rules are\n%s", l)
	}
}

// A set named by a rule can only get another type by a new table, in one transaction.
func TestRedefinedChainAndSet(t *testing.T) {
	p := openPlane(t)
	rows := rowsA()
	fatal(t, apply(t, p, state(map[string]*plan.Rows{"o": rows})))
	rows.NFTChains[inetChain("pre")] = plan.NFTChainSpec{Type: "filter", Hook: "prerouting", Priority: "-10",
		Policy: "drop"}
	rows.NFTSets[plan.NFTSet{Name: "pods"}] = plan.NFTSetSpec{Key: "ipv4_addr", Interval: true}
	s := state(map[string]*plan.Rows{"o": rows})
	fatal(t, apply(t, p, s))
	if have, want := dump(t, "inet", p.inet.nft)+dump(t, "netdev", p.netdev.nft), text(s); have != want {
		t.Errorf("the kernel holds\n%s\nwant\n%s", have, want)
	}
	if l := nftList(t); !strings.Contains(l, "hook prerouting priority -10; policy drop") &&
		!strings.Contains(l, "hook prerouting priority filter - 10; policy drop") {
		t.Errorf("the chain was not redefined:\n%s", l)
	}
}

func TestOwnersMayNameEachOthersSets(t *testing.T) {
	p := openPlane(t)
	b := chainRows(prerouting)
	b.NFTSets = map[plan.NFTSet]plan.NFTSetSpec{{Name: "s"}: {Key: "ipv4_addr"}}
	rows := map[string]*plan.Rows{"zz": b}
	for _, owner := range []string{"a", "c"} {
		rows[owner] = &plan.Rows{NFTRules: map[plan.NFTRule]string{{Chain: inetChain("pre"),
			Name: owner}: "ip saddr @s accept"}}
	}
	for _, owner := range []string{"aa", "bad", "d"} {
		rows[owner] = &plan.Rows{NFTRules: map[plan.NFTRule]string{{Chain: inetChain("pre"),
			Name: owner}: "ip saddr 192.0.2.1 drop"}}
	}
	plan.Add(&rows["bad"].NFTElems, plan.NFTElem{Set: "s", Key: "no-address"}, "")
	refused := plane.Refusals(apply(t, p, state(rows)))
	if len(refused) != 1 || refused[0].Owner != planetest.Owner("bad") || refused[0].Row != "nft elem s no-address" {
		t.Fatalf("refused: %v", refused)
	}
	if have := ruleOrder(t, p); have != "a aa c d" {
		t.Errorf("the rules are %q", have)
	}
}

// TestNamesOfWhoWasRefused: who names a set of an owner that was refused before is not refused, too, when that one is
// sound again.
func TestNamesOfWhoWasRefused(t *testing.T) {
	p := openPlane(t)
	owner := &plan.Rows{NFTSets: map[plan.NFTSet]plan.NFTSetSpec{{Name: "s"}: {Key: "nonsense"}}}
	rows := map[string]*plan.Rows{"chain": chainRows(prerouting), "owner": owner}
	if r := plane.Refusals(apply(t, p, state(rows))); len(r) != 1 || r[0].Owner != planetest.Owner("owner") {
		t.Fatalf("refused: %v", r)
	}
	owner.NFTSets[plan.NFTSet{Name: "s"}] = plan.NFTSetSpec{Key: "ipv4_addr"}
	rows["user"] = &plan.Rows{NFTElems: map[plan.NFTElem]string{{Set: "s", Key: "192.0.2.1"}: ""}}
	fatal(t, apply(t, p, state(rows)))
	if l := nftList(t); !strings.Contains(l, "192.0.2.1") {
		t.Errorf("the element is missing:\n%s", l)
	}
}

func TestRefusedRuleLeavesTheOldOne(t *testing.T) {
	p := openPlane(t)
	rows := chainRows(prerouting)
	rows.NFTSets = map[plan.NFTSet]plan.NFTSetSpec{{Name: "s"}: {Key: "ipv4_addr"}}
	k := plan.NFTRule{Chain: inetChain("pre"), Name: "r"}
	fatal(t, apply(t, p, state(map[string]*plan.Rows{"o": rows,
		"x": {NFTRules: map[plan.NFTRule]string{k: "ip saddr @s accept"}}})))
	rows.NFTSets = nil
	for range 2 {
		s := state(map[string]*plan.Rows{"o": rows, "x": {NFTRules: map[plan.NFTRule]string{k: "nonsense"}}})
		if r := plane.Refusals(p.Grow(t.Context(), s)); len(r) != 1 || r[0].Owner != planetest.Owner("x") {
			t.Fatalf("refused: %v", r)
		}
		fatal(t, p.Shrink(t.Context(), s))
		if !strings.Contains(nftList(t), "ip saddr @s accept") {
			t.Fatalf("the old rule is gone:\n%s", nftList(t))
		}
	}
	fatal(t, apply(t, p, state(map[string]*plan.Rows{"o": rows,
		"x": {NFTRules: map[plan.NFTRule]string{k: "accept"}}})))
	if l := nftList(t); strings.Contains(l, "set s ") {
		t.Errorf("the unwanted set is still there:\n%s", l)
	}
}

func TestForeignThingsInOurTableGo(t *testing.T) {
	p := openPlane(t)
	fatal(t, apply(t, p, stateA()))
	run(t, p.inet.nft, func(tx *knftables.Transaction) {
		tx.Add(&knftables.Set{Name: "theirs", Type: "ipv4_addr"})
		tx.Add(&knftables.Chain{Name: "theirs"})
		tx.Add(&knftables.Rule{Chain: "theirs", Rule: "ip saddr @theirs drop"})
		tx.Insert(&knftables.Rule{Chain: "pre", Rule: "jump theirs"})
		tx.Add(&knftables.Element{Set: "nets", Key: []string{"203.0.113.5-203.0.113.9"}})
		tx.Add(&knftables.Element{Set: "pods", Key: []string{"203.0.113.5"}})
	})
	p.Forget()
	fatal(t, apply(t, p, stateA()))
	if have, want := dump(t, "inet", p.inet.nft)+dump(t, "netdev", p.netdev.nft), text(stateA()); have != want {
		t.Errorf("the kernel holds\n%s\nwant\n%s", have, want)
	}
}

// TestChainWaitsForItsLink: also for one whose name has 15 characters, the most there are, and a dot, as a VLAN's.
func TestChainWaitsForItsLink(t *testing.T) {
	for _, name := range []string{"late0", "enp129s0f0.1000"} {
		t.Run(name, func(t *testing.T) { chainWaitsFor(t, name) })
	}
}

func chainWaitsFor(t *testing.T, name string) {
	p := openPlane(t)
	k := plan.NFTChain{Family: "netdev", Name: "in"}
	s := state(map[string]*plan.Rows{"late": {
		NFTChains: map[plan.NFTChain]plan.NFTChainSpec{k: {Type: "filter", Hook: "ingress", Priority: "0",
			Device: name}},
		NFTRules: map[plan.NFTRule]string{{Chain: k, Name: "r"}: "drop"},
	}, "other": rowsA()})
	waits := func() {
		t.Helper()
		if r := plane.Refusals(apply(t, p, s)); len(r) != 1 || r[0].Owner != planetest.Owner("late") ||
			r[0].Row != "nft chain netdev in" {
			t.Fatalf("refused: %v", r)
		}
	}
	holds := func() {
		t.Helper()
		fatal(t, apply(t, p, s))
		if have, want := dump(t, "inet", p.inet.nft)+dump(t, "netdev", p.netdev.nft), text(s); have != want {
			t.Errorf("the kernel holds\n%s\nwant\n%s", have, want)
		}
	}
	br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}
	waits()
	fatal(t, netlink.LinkAdd(br))
	holds()
	fatal(t, netlink.LinkDel(br))
	waits()
	fatal(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	holds()
}

// Kernels before 6.16 do not hook a chain to another link of the same name: it is made anew.
func TestChainFollowsItsLinksIndex(t *testing.T) {
	f, index := NewFake(), 7
	f.netdev.device = func(string) (int, bool) { return index, true }
	fatal(t, apply(t, f, stateA()))
	index = 8
	fatal(t, apply(t, f, stateA()))
	if tx := f.NetDev.LastTransaction.String(); !strings.Contains(tx, "delete table") ||
		!strings.Contains(tx, "add chain netdev egret lo-in") {
		t.Errorf("the chain was not made anew:\n%s", tx)
	}
}

// Each object has one record, also when objects were deleted by others and came back with another definition.
func TestRecordsFollowObjects(t *testing.T) {
	p := openPlane(t)
	fatal(t, apply(t, p, stateA()))
	run(t, p.inet.nft, func(tx *knftables.Transaction) {
		tx.Flush(&knftables.Chain{Name: "post"})
		tx.Delete(&knftables.Chain{Name: "post"})
	})
	p.Forget()
	rows := rowsA()
	rows.NFTChains[inetChain("post")] = plan.NFTChainSpec{Type: "nat", Hook: "postrouting", Priority: "-10"}
	fatal(t, apply(t, p, state(map[string]*plan.Rows{"a": rows})))
	records, err := p.inet.nft.ListElements(t.Context(), "set", recordSet)
	fatal(t, err)
	if have, want := len(records), len(p.inet.held.objects); have != want {
		t.Errorf("%d records of %d objects", have, want)
	}
}

func TestFailingTargetIsNobodysFault(t *testing.T) {
	f := NewFake()
	f.inet.nft = &counted{Interface: f.INet, away: 100}
	f.inet.held = newHeld()
	err := f.Grow(t.Context(), stateA())
	if !errors.Is(err, errAway) || len(plane.Refusals(err)) != 0 {
		t.Errorf("error is %v", err)
	}
	f.inet.nft = &silent{counted{Interface: f.INet, away: 100}}
	if err := f.Grow(t.Context(), stateA()); !errors.Is(err, errAway) || len(plane.Refusals(err)) != 0 {
		t.Errorf("error is %v", err)
	}
}

// silent can list, but neither write nor try.
type silent struct{ counted }

func (s *silent) ListAll(ctx context.Context) (map[string][]string, error) {
	return s.Interface.ListAll(ctx)
}

func (s *silent) Check(context.Context, *knftables.Transaction) error { return errAway }

func TestNothingWantedLeavesNothing(t *testing.T) {
	p := openPlane(t)
	fatal(t, apply(t, p, stateA()))
	fatal(t, apply(t, p, plan.New()))
	for _, nft := range []knftables.Interface{p.inet.nft, p.netdev.nft} {
		if names, err := nft.ListAll(t.Context()); !knftables.IsNotFound(err) {
			t.Errorf("left behind: %v %v", names, err)
		}
	}
}

func TestRefusesWhatCannotBeWritten(t *testing.T) {
	f := NewFake()
	for name, rows := range map[string]*plan.Rows{
		"family":     {NFTChains: map[plan.NFTChain]plan.NFTChainSpec{{Family: "ip", Name: "c"}: {}}},
		"rule name":  chainRows(prerouting, `say "hi"`),
		"no chain":   {NFTRules: map[plan.NFTRule]string{{Chain: inetChain("none"), Name: "r"}: "drop"}},
		"no set":     {NFTElems: map[plan.NFTElem]string{{Set: "none", Key: "10.0.0.1"}: ""}},
		"our record": {NFTSets: map[plan.NFTSet]plan.NFTSetSpec{{Name: recordSet}: {Key: "mark"}}},
	} {
		if r := plane.Refusals(apply(t, f, state(map[string]*plan.Rows{name: rows}))); len(r) != 1 ||
			r[0].Owner != planetest.Owner(name) {
			t.Errorf("%s: refused %v", name, r)
		}
	}
}

func largeSet(n int) *plan.Rows {
	r := chainRows(prerouting, "r")
	r.NFTSets = map[plan.NFTSet]plan.NFTSetSpec{{Name: "large"}: {Key: "ipv4_addr"}}
	for i := range n {
		plan.Add(&r.NFTElems, plan.NFTElem{Set: "large", Key: fmt.Sprintf("10.%d.%d.%d", i/62500, i/250%250,
			i%250+1)}, "")
	}
	return r
}

func TestOneElementMoreIsOneSmallTransaction(t *testing.T) {
	f := NewFake()
	s := state(map[string]*plan.Rows{"o": largeSet(5000)})
	fatal(t, apply(t, f, s))
	s.Replace(planetest.Owner("p"),
		&plan.Rows{}, &plan.Rows{NFTElems: map[plan.NFTElem]string{{Set: "large", Key: "10.200.0.1"}: ""}})
	fatal(t, apply(t, f, s))
	tx := f.INet.LastTransaction.String()
	if l := strings.Split(strings.TrimSpace(tx), "\n"); len(l) != 3 ||
		!slices.Contains(l, "add element inet egret large { 10.200.0.1 }") {
		t.Errorf("the transaction is\n%s", tx)
	}
}

func TestCancelledContextIsNobodysFault(t *testing.T) {
	p := openPlane(t)
	ctx, cancel := context.WithCancel(t.Context())
	fatal(t, apply(t, p, stateA()))
	cancel()
	err := p.Grow(ctx, stateB())
	if err == nil || len(plane.Refusals(err)) != 0 || errors.Is(err, errAway) {
		t.Errorf("error is %v", err)
	}
}

func BenchmarkKernelOneElementInto5000(b *testing.B) {
	p := openPlane(b)
	s := state(map[string]*plan.Rows{"o": largeSet(5000)})
	start := time.Now()
	if err := plane.Apply(b.Context(), []plane.Plane{p}, s); err != nil {
		b.Fatal(err)
	}
	b.Logf("loading 5,000 elements took %v", time.Since(start))
	old := &plan.Rows{}
	for i := 0; b.Loop(); i++ {
		one := &plan.Rows{NFTElems: map[plan.NFTElem]string{{Set: "large", Key: fmt.Sprintf("10.200.%d.%d", i/250,
			i%250)}: ""}}
		s.Replace(planetest.Owner("p"), old, one)
		if err := p.Grow(b.Context(), s); err != nil {
			b.Fatal(err)
		}
		old = one
	}
}
