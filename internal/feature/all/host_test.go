package all_test

import (
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestHostTablesAreDocumented: the rules and chains that people read of are those that the features use.
func TestHostTablesAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../gateway/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range plan.HostRules() {
		lines = append(lines, r.String())
	}
	for _, c := range plan.HostChains() {
		lines = append(lines, c.String())
	}
	if text := "```text\n" + strings.Join(lines, "\n") + "\n```\n"; !strings.Contains(string(readme), text) {
		t.Errorf("internal/feature/gateway/README.md has other rules and chains of the host than\n%s", text)
	}
}

// TestHostTablesAreInOrder: the registries have rules, and chains of a hook, in the order in which the kernel tries
// them, each with a priority of its own, so that it is not left open which comes first; and no two chains have one
// name.
func TestHostTablesAreInOrder(t *testing.T) {
	if p := priorities(plan.HostRules()); !slices.IsSorted(p) || len(slices.Compact(p)) != len(plan.HostRules()) {
		t.Errorf("rules have priorities %v, want them to rise", p)
	}
	last, seen := map[string]int{}, map[plan.NFTChain]bool{}
	for _, c := range plan.HostChains() {
		at, named := map[string]int{"mangle": -150, "dstnat": -100, "filter": 0, "srcnat": 100}[c.Spec().Priority]
		if n, err := strconv.Atoi(c.Spec().Priority); err == nil {
			at = n
		} else if !named {
			t.Errorf("%s: what priority is that?", c)
		}
		if before, is := last[c.Spec().Hook]; is && at <= before || seen[c.ID()] {
			t.Errorf("%s: it comes before the one above it, or is named as another", c)
		}
		last[c.Spec().Hook], seen[c.ID()] = at, true
	}
}

func priorities(rules []plan.HostRule) (out []int) {
	for _, r := range rules {
		out = append(out, r.Priority())
	}
	return out
}

// TestHostTablesAreClear: in worlds of all kinds each policy routing rule and each base chain is one of the registries,
// of that feature.
func TestHostTablesAreClear(t *testing.T) {
	rules, chains := map[int]string{}, map[plan.NFTChain]plan.HostChain{}
	for _, r := range plan.HostRules() {
		rules[r.Priority()] = r.Features()
	}
	for _, c := range plan.HostChains() {
		chains[c.ID()] = c
	}
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]world.GatewayMode{world.SharedGateway, world.LocalGateway}).Draw(t, "gateway mode")
		w := compiletest.Small("n1", mode)
		w.Config.UserspaceOVS = rapid.Bool().Draw(t, "userspace")
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			compiletest.Change(t, w)
		}
		for _, f := range all.Features() {
			s, feature := compile.Full(w, []compile.Feature{f}), path.Base(reflect.TypeOf(f).PkgPath())
			for r := range s.Rules.Rows() {
				if !isOf(rules[r.Priority], feature) {
					t.Fatalf("rule %s of feature %s has a priority of no rule of that feature", r, feature)
				}
			}
			for id, spec := range s.NFTChains.Rows() {
				c, is := chains[id]
				spec.Device = ""
				known := is && c.Spec() == spec && isOf(c.Features(), feature)
				if spec != (plan.NFTChainSpec{}) && !known {
					t.Fatalf("chain %s %+v of feature %s is no chain of that feature", id, spec, feature)
				}
			}
		}
	})
}

func isOf(features, feature string) bool {
	of := strings.Fields(features)
	return slices.Contains(of, feature) || slices.Contains(of, shared)
}
