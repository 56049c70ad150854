package egressip

import (
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
)

// egressOf is an address of an EgressIP in the tables of what a node tells.
func egressOf(egressIP string, ip netip.Addr) plan.Egress {
	return plan.Egress{Object: refTo(egressIP), Network: ref.DefaultNetwork, IP: ip}
}

func refTo(egressIP string) ref.Object { return ref.Object{Kind: ref.EgressIP, Name: egressIP} }

// answer announces an address, and says that this node answers for it.
func answer(egressIP string, a plan.Announcement, out *plan.Rows) {
	plan.Claim(&out.Announcements, a, plan.None{})
	plan.Claim(&out.Answered, egressOf(egressIP, a.IP), a)
}
