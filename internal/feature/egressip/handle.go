package egressip

import (
	"fmt"
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Times of the dead man's handle, in seconds.
const (
	// permission is how long OVN may answer unconditionally after the agent was last there. It is less than the 30 s after which an agent counts as away and its
	// addresses move.
	permission = 20
	// silence is how long a claim of another machine counts: whoever holds an address announces it every minute.
	silence = 70
)

// Tables of the gateway bridge.
const (
	answersTable = 4 // what OVN says about addresses that this node holds
	claimsTable  = 5 // what others say about them
)

// handlePriority is below that of what mutes an address, and above that of ARP and ND of others.
const handlePriority = 119

// learnt marks the flows that the switch makes itself. They end by themselves.
const learnt = "cookie=0xdeff106"

// handle keeps one holder where no agent is: OVN goes on answering for what it was told to hold, also when Kubernetes has named another node. While the agent is
// there it decides (guard, in package node) and renews a permission. When that has run out the switch itself keeps OVN's answers in, about each address
// that another machine has announced. If nobody has, the node is still its holder and answers.
func handle(c *world.Config, f world.Family, ip netip.Addr, own string, out *plan.Rows) {
	uplink, said := "{"+c.UplinkInterface+"}", [...]string{"arp", "icmp6,icmp_type=136"}[f]
	about := "," + [...]string{"arp_spa=", "nd_target="}[f] + ip.String()
	ovn := plan.DefaultNames().PatchPort()
	out.AddFlow(c.Bridge, 0, handlePriority, said+",in_port="+ovn+about, fmt.Sprintf("resubmit(,%d)", answersTable))
	both := fmt.Sprintf("resubmit(,%d),LOCAL,output:%s", claimsTable, ovn)
	out.AddFlow(c.Bridge, 0, handlePriority, said+",in_port="+uplink+about, both)

	out.AddFlow(c.Bridge, answersTable, 20, fmt.Sprintf("hard_timeout=%d", permission), "output:"+uplink)
	out.AddFlow(c.Bridge, answersTable, 0, "", "output:"+uplink)
	out.AddFlow(c.Bridge, claimsTable, 20, "dl_src="+own, "drop") // bonds and switches may send a node's own announcement back to it
	out.AddFlow(c.Bridge, claimsTable, 10, said, learn[f])
}

// learn adds a flow without actions, which drops: about the address of the packet that is being looked at.
var learn = [...]string{
	fmt.Sprintf("learn(table=%d,%s,priority=10,hard_timeout=%d,eth_type=0x806,NXM_OF_ARP_SPA[])", answersTable, learnt, silence),
	fmt.Sprintf("learn(table=%d,%s,priority=10,hard_timeout=%d,eth_type=0x86dd,nw_proto=58,icmpv6_type=136,NXM_NX_ND_TARGET[])", answersTable, learnt, silence),
}
