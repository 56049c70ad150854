package egress

import (
	"fmt"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Host writes rows of one family in the host's kernel.
type Host struct {
	Family world.Family
	Out    *plan.Rows
}

// IP is the header's name in nftables.
func (h Host) IP() string { return IP(h.Family) }

// AddSet claims a set of addresses in nftables.
func (h Host) AddSet(name string) {
	plan.Add(&h.Out.NFTSets, plan.NFTSet{Name: name}, plan.NFTSetSpec{Key: AddrType(h.Family)})
}

// AddRule claims a rule in nftables.
func (h Host) AddRule(c plan.NFTChain, name, format string, args ...any) {
	plan.Add(&h.Out.NFTRules, plan.NFTRule{Chain: c, Name: name}, fmt.Sprintf(format, args...))
}

// RouteBy claims a rule of routing that asks for a whole mark.
func (h Host) RouteBy(r plan.Rule) {
	r.V6, r.Mask = h.Family == world.V6, 0xffffffff
	plan.Add(&h.Out.Rules, r, plan.None{})
}

// CheckByMark has the check of a reply's source look up the way back with the connection's mark, so that strict
// rp_filter finds it, too. It stays when the rules go: docs/egress-service.md says why, and whom it concerns.
func (h Host) CheckByMark() {
	if h.Family == world.V4 {
		plan.Add(&h.Out.Sysctls, plan.Sysctl{Key: "net.ipv4.conf.all.src_valid_mark"}, "1")
	}
}

// ToHost sends packets of other nodes' pods in a set, which those nodes steered here, to the host; of these what a
// match beside asks for.
func ToHost(n *world.Node, f world.Family, set string, priority int, beside string, out *plan.Rows) {
	hop, ok := Management(n, f)
	if !ok {
		return
	}
	names := plan.DefaultNames()
	out.AddSet(set)
	match := fmt.Sprintf("inport == %q && %s.src == %s%s", names.RouterToTransit(n.Name), f.Match(), plan.InSet(set),
		beside)
	out.AddPolicy(names, set, priority, match, "reroute", []string{hop.String()}, nil)
}
