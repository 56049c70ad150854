package plan

import "fmt"

// MainTable is the routing table of the host that is looked up for what no rule leads elsewhere.
const MainTable = 254

// ReplyTable is the routing table with a route of each egress IP of this node's, for replies that the host is to cut.
// Open vSwitch does not follow it, as it does local, main and default. After any change in those, a userspace datapath
// forgets all routes and reads them again, and packets that it translates meanwhile leave by no tunnel.
const ReplyTable = 0x45677

// LocalTable is the routing table of the host's own addresses.
const LocalTable = 255

// IsReserved says whether a routing table is never one that people can have packets of pods routed by.
func IsReserved(table uint32) bool { return table == LocalTable || table == ReplyTable }

// LinkTable is the routing table with the routes of the link of that index.
func LinkTable(index int) int { return 1000 + index }

// HostRule is one priority of the host's policy routing rules, for rules of one purpose.
type HostRule uint8

// In the order in which the kernel tries them. It has rules of its own at 0 (its local table), at 1000 (links in VRFs),
// at 32766 (MainTable) and at 32767.
const (
	RuleBeforeVRF HostRule = iota
	RuleNetwork
	RuleReply
	RuleNodeIP
	RuleEgressIP

	hostRules
)

var hostRuleRegistry = [hostRules]struct {
	priority          int
	features, purpose string
}{
	RuleBeforeVRF: {999, "egressip egressservice", "find pods by the main table, before the rule of a link's VRF does"},
	RuleNetwork:   {5000, "egressservice", "lead pods behind an EgressService to its network's table"},
	RuleReply:     {5998, "egressip", "lead replies to egress IPs that the host cuts to ReplyTable"},
	RuleNodeIP:    {5999, "egressip", "lead what is marked 1008 to the main table"},
	RuleEgressIP:  {6000, "egressip", "lead pods with an egress IP on a link to the link's table"},
}

// HostRules are all there are.
func HostRules() []HostRule {
	out := make([]HostRule, hostRules)
	for i := range out {
		out[i] = HostRule(i)
	}
	return out
}

// Priority is that of the rules.
func (r HostRule) Priority() int { return hostRuleRegistry[r].priority }

// Features are those that have such rules, with spaces between.
func (r HostRule) Features() string { return hostRuleRegistry[r].features }

// String is the line in documents.
func (r HostRule) String() string {
	x := hostRuleRegistry[r]
	return fmt.Sprintf("rule %4d  %-22s  %s", x.priority, x.features, x.purpose)
}
