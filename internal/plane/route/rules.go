package route

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

func ruleRow(k plan.Rule) string { return "rule " + k.String() }

// seenRule is k as the kernel shows it.
func seenRule(k plan.Rule) plan.Rule {
	k.Src, k.Dst = seenPrefix(k.Src), seenPrefix(k.Dst)
	k.Mark &= k.Mask
	return k
}

// checkRule refuses a rule without a table: the kernel takes it, and finds one for it.
func checkRule(r plan.Rule) error {
	if r.Table == 0 {
		return fmt.Errorf("%w: a rule must name a table", errInvalid)
	}
	return nil
}

func seenPrefix(p netip.Prefix) netip.Prefix {
	if p.Bits() <= 0 {
		return netip.Prefix{}
	}
	return p.Masked()
}

func (p *Plane) growRules(want *plan.State, r *refusals) error {
	if len(want.Rules) == 0 {
		return nil
	}
	have, err := p.stack.listRules()
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	for _, k := range slices.SortedFunc(maps.Keys(want.Rules), compareRules) {
		if _, there := have[seenRule(k)]; there {
			continue
		}
		if err := r.addRefusal(want.Rules.Owner(k), ruleRow(k), p.stack.addRule(seenRule(k))); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) shrinkRules(want *plan.State, _ *refusals) error {
	wanted := map[plan.Rule]bool{}
	for k := range want.Rules {
		wanted[seenRule(k)] = true
	}
	have, err := p.stack.listRules()
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	for k, ours := range have {
		if !ours || wanted[k] {
			continue
		}
		if err := p.stack.delRule(k); err != nil {
			return fmt.Errorf("delete %s: %w", ruleRow(k), err)
		}
	}
	return nil
}

func compareRules(a, b plan.Rule) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.String(), b.String()))
}
