package compiletest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// HostSteps are, in order, routes one by one, rules one by one, and nftables, which is one transaction; back in the
// opposite order.
func HostSteps(have, want *plan.State) (grow, shrink []func()) {
	routes, rules := plan.Diff(Rows(have.Routes), want.Routes, plan.Same), plan.Diff(Rows(have.Rules), want.Rules,
		plan.Same)
	nft, elems := plan.Diff(Rows(have.NFTRules), want.NFTRules, plan.Same), plan.Diff(Rows(have.NFTElems),
		want.NFTElems, plan.Same)
	chains, sets := plan.Diff(Rows(have.NFTChains), want.NFTChains, plan.Same), plan.Diff(Rows(have.NFTSets),
		want.NFTSets, plan.Same)
	losses := maps.Clone(elems.Del)
	maps.DeleteFunc(losses, func(k plan.NFTElem, _ string) bool {
		set := plan.NFTSet{Name: k.Set}
		_, isWanted := want.NFTSets.Get(set)
		return !set.LosesFirst(isWanted)
	})
	shrink = append(shrink, func() {
		dropAll(have.NFTRules, nft.Del)
		dropAll(have.NFTElems, elems.Del)
		dropAll(have.NFTSets, sets.Del) // earlier rules refer to them
		dropAll(have.NFTChains, chains.Del)
	})
	for _, k := range inOrder(routes.Put) {
		grow = append(grow, func() { have.Routes.Put(plan.Owner{}, k, routes.Put[k]) })
	}
	for _, k := range inOrder(rules.Put) {
		grow = append(grow, func() { have.Rules.Put(plan.Owner{}, k, plan.None{}) })
	}
	for _, k := range inOrder(rules.Del) {
		shrink = append(shrink, func() { have.Rules.Drop(plan.Owner{}, k) })
	}
	for _, k := range inOrder(routes.Del) {
		shrink = append(shrink, func() { have.Routes.Drop(plan.Owner{}, k) })
	}
	return append(grow, func() {
		PutAll(have.NFTChains, chains.Put)
		PutAll(have.NFTSets, sets.Put)
		PutAll(have.NFTRules, nft.Put)
		dropAll(have.NFTElems, losses)
		PutAll(have.NFTElems, elems.Put)
	}), shrink
}

// inOrder are a map's keys, always in the same order: a test that draws what becomes of them finds a failure again by
// its seed.
func inOrder[K comparable, V any](m map[K]V) []K {
	text := make(map[K]string, len(m))
	for k := range m {
		text[k] = fmt.Sprint(k)
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return cmp.Compare(text[a], text[b]) })
}

// PutAll adds rows to a table.
func PutAll[K comparable, V any](t plan.Table[K, V], put map[K]V) {
	for k, v := range put {
		t.Put(plan.Owner{}, k, v)
	}
}

func dropAll[K comparable, V any](t plan.Table[K, V], del map[K]V) {
	for k := range del {
		t.Drop(plan.Owner{}, k)
	}
}

// NorthboundSteps are the changes of single rows; of sets that stay, their members.
func NorthboundSteps(have, want *plan.State) []func() {
	former := *have // the rows that stood belong to the former plan
	have.NB, have.SetElems = plan.New().NB, plan.New().SetElems
	PutAll(have.NB, Rows(former.NB))
	PutAll(have.SetElems, Rows(former.SetElems))
	var steps []func()
	d := plan.Diff(Rows(have.NB), want.NB, plan.EqualRows)
	for _, k := range inOrder(d.Put) {
		if isNamedByRules(k) { // no flow is made of a rule before the set that it names is there
			have.NB.Put(plan.Owner{}, k, d.Put[k])
			continue
		}
		steps = append(steps, func() { have.NB.Put(plan.Owner{}, k, d.Put[k]) })
	}
	for _, k := range inOrder(d.Del) {
		if !isNamedByRules(k) { // goes when no rule names it
			steps = append(steps, func() { have.NB.Drop(plan.Owner{}, k) })
		}
	}
	e := plan.Diff(Rows(have.SetElems), want.SetElems, plan.Same)
	for _, k := range inOrder(e.Put) {
		steps = append(steps, func() { have.SetElems.Put(plan.Owner{}, k, plan.None{}) })
	}
	for _, k := range inOrder(e.Del) {
		steps = append(steps, func() { have.SetElems.Drop(plan.Owner{}, k) })
	}
	return steps
}

func isNamedByRules(row plan.RowID) bool {
	return row.Table == "Address_Set" || row.Table == "Port_Group"
}

// FlowSteps are two: a bridge's flows are added in one bundle, which OVS applies as one, and so are they removed. That
// is why the flow that drops what was not translated may stand beside the one that lets everything else out.
func FlowSteps(have, want *plan.State) (grow, shrink []func()) {
	d := plan.Diff(Rows(have.Flows), want.Flows, plan.Same)
	put := func() {
		for k, v := range d.Put {
			have.Flows.Put(plan.Owner{}, k, v)
		}
	}
	remove := func() {
		for k := range d.Del {
			have.Flows.Drop(plan.Owner{}, k)
		}
	}
	return []func(){put}, []func(){remove}
}

// Rows are those of a table, in a map of their own.
func Rows[K comparable, V any](t plan.Table[K, V]) map[K]V {
	m := map[K]V{}
	for k, v := range t.Rows() {
		m[k] = v
	}
	return m
}
