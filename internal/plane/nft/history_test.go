package nft

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// unreliable is a table in memory that refuses what has "refused" in it, and whose next transaction may fail, before or
// after it is carried out.
type unreliable struct {
	*knftables.Fake
	before, after error
	runs, lists   int
}

func (u *unreliable) Run(ctx context.Context, tx *knftables.Transaction) error {
	before, after := u.before, u.after
	u.before, u.after = nil, nil
	u.runs++
	if before != nil {
		return before
	}
	if err := u.Check(ctx, tx); err != nil {
		return err
	}
	if err := u.Fake.Run(ctx, tx); err != nil {
		return err
	}
	return after
}

func (u *unreliable) Check(ctx context.Context, tx *knftables.Transaction) error {
	if strings.Contains(tx.String(), "refused") {
		return fmt.Errorf("syntax error")
	}
	return u.Fake.Check(ctx, tx)
}

func (u *unreliable) ListAll(ctx context.Context) (map[string][]string, error) {
	u.lists++
	return u.Fake.ListAll(ctx)
}

// TestChangesEqualWhole: whatever changes in the plan and at links, however transactions fail, whoever meddles, and
// however often the process starts anew: after one undisturbed pass the tables hold what a comparison of everything
// asks for, and another pass has nothing to do.
func TestChangesEqualWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			h.step(t)
		}
		h.check(t)
	})
}

type history struct {
	inet, netdev *unreliable
	index        int // of the one link
	plane        *Plane
	state        *plan.State
	rows         map[string]*plan.Rows
}

func newHistory() *history {
	h := &history{index: 1,
		inet:   &unreliable{Fake: knftables.NewFake(knftables.InetFamily, TableName)},
		netdev: &unreliable{Fake: knftables.NewFake(knftables.NetDevFamily, TableName)}}
	h.restart()
	return h
}

// restart is a new process.
func (h *history) restart() {
	h.plane = h.fresh()
	h.state, h.rows = plan.New(), map[string]*plan.Rows{}
	h.replace("base", baseRows())
}

func (h *history) fresh() *Plane {
	return New(h.inet, h.netdev, func(string) (int, bool) { return h.index, h.index > 0 })
}

// baseRows are the sets and chains that other owners' rows are in.
func baseRows() *plan.Rows {
	r := rowsA()
	r.NFTElems = nil
	r.NFTSets[plan.NFTSet{Name: "e/partly.v4"}] = plan.NFTSetSpec{Key: "ipv4_addr"}
	r.NFTSets[plan.NFTSet{Name: "e/destinations.v4"}] = plan.NFTSetSpec{Key: "ipv4_addr", Interval: true}
	r.NFTRules = map[plan.NFTRule]string{{Chain: inetChain("pre"), Name: "30-last"}: "accept"}
	return r
}

func (h *history) replace(owner string, now *plan.Rows) {
	old := h.rows[owner]
	if old == nil {
		old = &plan.Rows{}
	}
	h.state.Replace(plan.Owner{Feature: owner}, old, now)
	h.rows[owner] = now
}

func (h *history) step(t *rapid.T) {
	switch rapid.IntRange(0, 11).Draw(t, "step") {
	case 0, 1, 2, 3:
		h.replace(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner"), randomRows(t))
	case 4, 5, 6:
		h.trouble(t)
		_ = h.apply(t)
	case 7:
		_ = h.plane.Grow(t.Context(), h.state)
	case 8:
		h.changeBase(t)
	case 9:
		h.index = rapid.IntRange(0, 2).Draw(t, "link")
	case 10:
		h.meddle(t)
	case 11:
		h.restart()
	}
}

func randomRows(t *rapid.T) *plan.Rows {
	r := &plan.Rows{}
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		k := plan.NFTRule{Chain: inetChain(rapid.SampledFrom([]string{"pre", "marking"}).Draw(t, "chain"))}
		k.Name = fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "name"), "0-rule")
		texts := []string{"accept", "drop", "accept", "drop", "accept", "drop", "refused", "a;b"}
		plan.Add(&r.NFTRules, k, rapid.SampledFrom(texts).Draw(t, "text"))
	}
	for range rapid.IntRange(0, 6).Draw(t, "elements") {
		sets := []string{"pods", "nets", "e/partly.v4", "e/destinations.v4"}
		plan.Add(&r.NFTElems, plan.NFTElem{Set: rapid.SampledFrom(sets).Draw(t, "set"),
			Key: rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.1/32", "10.0.0.0/24", "10.0.0.9"}).Draw(t, "key")}, "")
		plan.Add(&r.NFTElems, plan.NFTElem{Set: "marks", Key: rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2"}).
			Draw(t, "marked")}, rapid.SampledFrom([]string{"0x1", "2"}).Draw(t, "mark"))
	}
	return r
}

// changeBase takes a chain or a set away, or defines it otherwise, or all is there again.
func (h *history) changeBase(t *rapid.T) {
	r := baseRows()
	switch rapid.IntRange(0, 4).Draw(t, "base") {
	case 0:
		delete(r.NFTChains, inetChain("marking"))
	case 1:
		delete(r.NFTSets, plan.NFTSet{Name: rapid.SampledFrom([]string{"pods", "nets", "marks",
			"e/partly.v4", "e/destinations.v4"}).Draw(t, "set")})
	case 2:
		r.NFTSets[plan.NFTSet{Name: "pods"}] = plan.NFTSetSpec{Key: "ipv4_addr", Interval: true}
	case 3:
		r = &plan.Rows{}
	}
	h.replace("base", r)
}

// trouble is that the next transaction is not carried out, or its answer is lost.
func (h *history) trouble(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "trouble") {
	case 0:
		h.inet.before = errAway
	case 1:
		h.inet.after = errAway
	}
}

// meddle deletes or adds what somebody else can, who is noticed.
func (h *history) meddle(t *rapid.T) {
	tx := h.inet.NewTransaction()
	switch rapid.IntRange(0, 3).Draw(t, "meddled with") {
	case 0:
		tx.Delete(&knftables.Table{})
	case 1:
		tx.Delete(&knftables.Element{Set: "pods", Key: []string{"10.0.0.1"}})
	case 2:
		tx.Add(&knftables.Element{Set: "pods", Key: []string{"192.0.2.1"}})
	case 3:
		tx.Add(&knftables.Rule{Chain: "pre", Rule: "drop"})
	}
	_ = h.inet.Fake.Run(t.Context(), tx) // there may be none
	h.plane.Forget()
}

func (h *history) apply(t *rapid.T) error {
	return plane.Apply(t.Context(), []plane.Plane{h.plane}, h.state)
}

// check leaves out what the target refuses first: what it refused, and what it kept for that, is no difference.
func (h *history) check(t *rapid.T) {
	h.inet.before, h.inet.after, h.index = nil, nil, max(h.index, 1)
	for owner, r := range h.rows {
		h.replace(owner, withoutRefused(r))
	}
	refused := h.apply(t)
	if !plane.OnlyRefusals(refused) {
		t.Fatal(refused)
	}
	differences, err := h.fresh().Compare(t.Context(), h.state)
	if err != nil || len(differences) > 0 {
		t.Fatalf("after an undisturbed pass: %v, %v; refused: %v", differences, err, refused)
	}
	runs, lists := h.inet.runs+h.netdev.runs, h.inet.lists+h.netdev.lists
	_ = h.apply(t)
	if n := h.inet.runs + h.netdev.runs - runs; n > 0 {
		t.Fatalf("another pass wrote %d times", n)
	}
	if n := h.inet.lists + h.netdev.lists - lists; n > 0 {
		t.Fatalf("another pass read the tables %d times", n)
	}
}

func withoutRefused(r *plan.Rows) *plan.Rows {
	now := *r
	now.NFTRules = maps.Clone(r.NFTRules)
	maps.DeleteFunc(now.NFTRules, func(_ plan.NFTRule, text string) bool { return text == "refused" })
	return &now
}

// TestLostAnswer: a rule of a transaction that was carried out, and whose answer was lost, is there once, and goes,
// also where it was refused before.
func TestLostAnswer(t *testing.T) {
	for _, refused := range []bool{false, true} {
		h := newHistory()
		pass := func(text string) error {
			r := &plan.Rows{}
			if text != "" {
				r.NFTRules = map[plan.NFTRule]string{{Chain: inetChain("pre"), Name: "00-rule"}: text}
			}
			h.replace("o", r)
			return plane.Apply(t.Context(), []plane.Plane{h.plane}, h.state)
		}
		if err := pass(map[bool]string{true: "refused"}[refused]); len(plane.Refusals(err)) > 0 != refused {
			t.Fatalf("refused: %t; have %v", refused, err)
		}
		h.inet.after = errAway
		_ = pass("accept")
		if err := pass("accept"); err != nil || h.count(t, "00-rule") != 1 {
			t.Errorf("refused before: %t; it is there %d times: %v", refused, h.count(t, "00-rule"), err)
		}
		if err := pass(""); err != nil || h.count(t, "00-rule") != 0 {
			t.Errorf("refused before: %t; it is there %d times in the end: %v", refused, h.count(t, "00-rule"), err)
		}
	}
}

// count counts the rules of a name in chain pre.
func (h *history) count(t *testing.T, name string) (n int) {
	t.Helper()
	have, err := h.inet.ListRules(t.Context(), "pre")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range have {
		if is, _, _ := parseRuleComment(*r.Comment); is == name {
			n++
		}
	}
	return n
}

// sink takes everything, and has nothing.
type sink struct{ *knftables.Fake }

func (sink) Run(context.Context, *knftables.Transaction) error { return nil }

// members is a plane with that many elements, and what brings another one and takes it away again.
func members(t testing.TB, n int) (change func()) {
	inet := sink{knftables.NewFake(knftables.InetFamily, TableName)}
	p := New(inet, sink{knftables.NewFake(knftables.NetDevFamily, TableName)}, linkIndex)
	s := state(map[string]*plan.Rows{"o": largeSet(n)})
	pass := func() {
		if err := plane.Apply(t.Context(), []plane.Plane{p}, s); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	old, now := &plan.Rows{}, &plan.Rows{}
	plan.Add(&now.NFTElems, plan.NFTElem{Set: "large", Key: "10.200.0.1"}, "")
	return func() {
		s.Replace(plan.Owner{Feature: "p"}, old, now)
		old, now = now, old
		pass()
	}
}

// TestOneChangeCostsTheSame however many elements there are.
func TestOneChangeCostsTheSame(t *testing.T) {
	few, many := testing.AllocsPerRun(20, members(t, 10)), testing.AllocsPerRun(20, members(t, 10000))
	if many > 1.2*few {
		t.Errorf("one element more takes %v allocations beside 10 others, and %v beside 10,000", few, many)
	}
}

func BenchmarkOneElement(b *testing.B) {
	for _, n := range []int{10, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			change := members(b, n)
			b.ReportAllocs()
			for b.Loop() {
				change()
			}
		})
	}
}
