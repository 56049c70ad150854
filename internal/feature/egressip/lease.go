package egressip

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Times of the ARP reply lease, in seconds.
const (
	// leased is how long OVN may answer unconditionally after the agent was last there. It is less than the 30 s
	// after which an agent counts as away and its addresses move.
	leased = 20
	// silence is how long a claim of another machine counts: a holder announces its address every minute.
	silence = 70
)

// addLeaseFlows adds the flows that stop this node answering ARP and ND for an address when the agent has not renewed
// its lease and another machine announces the address: OVN goes on answering for what it was told to hold, also when
// another node is assigned it. While the agent is there it decides (internal/holder) and renews the lease, and what was
// announced by then does not count later: it may have been the holder of before. If nobody else announces the address,
// the node is still its holder and answers.
func addLeaseFlows(c *world.Config, f world.Family, ip netip.Addr, own string, out *plan.Rows) {
	uplink, said := "{"+c.UplinkInterface+"}", [...]string{"arp", "icmp6,icmp_type=136"}[f]
	about := "," + [...]string{"arp_spa=", "nd_target="}[f] + ip.String()
	answer := fmt.Sprintf("resubmit(,%d)", plan.AnswerOpen.Table())
	out.AddFlow(c.Bridge, plan.LeaseGate, said+",in_port="+plan.PatchPort+about, answer)
	both := fmt.Sprintf("resubmit(,%d),LOCAL,output:%s", plan.ClaimReceived.Table(), plan.PatchPort)
	out.AddFlow(c.Bridge, plan.LeaseGate, said+",in_port="+uplink+about, both)

	out.AddFlow(c.Bridge, plan.AnswerLeased, fmt.Sprintf("hard_timeout=%d", leased), "output:"+uplink)
	out.AddFlow(c.Bridge, plan.AnswerOpen, "", "output:"+uplink)
	// Bonds and switches may send a node's own announcement back to it.
	out.AddFlow(c.Bridge, plan.ClaimOwn, "dl_src="+own, "drop")
	out.AddFlow(c.Bridge, plan.ClaimReceived, said, learnAction(f))
}

// learnAction adds a flow without actions, which drops: about the address of the packet that is being looked at.
func learnAction(f world.Family) string {
	about := [...]string{
		"eth_type=0x806,NXM_OF_ARP_SPA[]",
		"eth_type=0x86dd,nw_proto=58,icmpv6_type=136,NXM_NX_ND_TARGET[]",
	}[f]
	at := plan.AnswerSilenced
	return fmt.Sprintf("learn(table=%d,cookie=%#x,priority=%d,hard_timeout=%d,%s)",
		at.Table(), plan.LearntCookie, at.Priority(), silence, about)
}
