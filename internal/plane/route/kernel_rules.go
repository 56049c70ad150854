package route

import (
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

func (k *kernel) listRules() (map[plan.Rule]bool, error) {
	have := map[plan.Rule]bool{}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := listRules(k.netlink, family)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if rule, ok := fromRule(r); ok {
				have[rule] = have[rule] || r.Protocol == Protocol
			}
		}
	}
	return have, nil
}

// fromRule leaves out rules that ask for more than a plan.Rule can, and those without a table, of which the netlink
// package does not tell what they do.
func fromRule(r netlink.Rule) (plan.Rule, bool) {
	if r.Invert || r.Tos != 0 || r.TunID != 0 || r.Goto >= 0 || r.Flow >= 0 || r.OifName != "" ||
		r.SuppressIfgroup >= 0 || r.SuppressPrefixlen >= 0 || r.Dport != nil || r.Sport != nil || r.IPProto != 0 ||
		r.UIDRange != nil || r.Table == 0 {
		return plan.Rule{}, false
	}
	rule := plan.Rule{V6: r.Family == netlink.FAMILY_V6, Priority: r.Priority, Table: r.Table, Mark: r.Mark,
		In: r.IifName}
	if r.Mask != nil {
		rule.Mask = *r.Mask
	}
	rule.Src, _ = fromIPNet(r.Src)
	rule.Dst, _ = fromIPNet(r.Dst)
	return rule, true
}

func (k *kernel) addRule(r plan.Rule) error {
	if err := checkRule(r); err != nil {
		return err
	}
	return k.netlink.RuleAdd(toRule(r))
}

func (k *kernel) delRule(r plan.Rule) error {
	return ignoreGone(k.netlink.RuleDel(toRule(r)), unix.ENOENT)
}

func toRule(r plan.Rule) *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family = netlink.FAMILY_V4
	if r.V6 {
		rule.Family = netlink.FAMILY_V6
	}
	rule.Priority, rule.Table, rule.Protocol = r.Priority, r.Table, Protocol
	if r.Table == 0 {
		rule.Type = unix.RTN_UNREACHABLE
	}
	rule.IifName = r.In
	if r.Mask != 0 {
		rule.Mark, rule.Mask = r.Mark, &r.Mask
	}
	if r.Src.IsValid() {
		rule.Src = toIPNet(r.Src)
	}
	if r.Dst.IsValid() {
		rule.Dst = toIPNet(r.Dst)
	}
	return rule
}
