package flow

import (
	"context"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// ofPackets grows all flows but those of the reply lease.
type ofPackets struct{ *Plane }

// ofReplies grows those.
type ofReplies struct{ *Plane }

// ForPackets is the plane of all flows that packets meet. Together with ForReplies it holds what the plane holds, and
// reads and removes as that does.
func (p *Plane) ForPackets() plane.Plane { return ofPackets{p} }

// ForReplies is the plane that adds the reply lease of egress IPs when ForPackets has grown. OVN's replies to ARP and
// ND about an egress IP pass by its lease alone, and are dropped before (plan.AnswerUnleased). Nothing that leads
// packets here has to wait for it, and ovs-ofctl takes as long for a flow as all of OVN does for a change.
func (p *Plane) ForReplies() plane.Plane { return ofReplies{p} }

func (p ofPackets) Grow(ctx context.Context, want *plan.State) error {
	return p.grow(ctx, want, func(f plan.Flow) bool { return !isLease(f) })
}

func (p ofReplies) Name() string { return planeName + "-replies" }

func (p ofReplies) Grow(ctx context.Context, want *plan.State) error {
	return p.grow(ctx, want, isLease)
}

// Shrink has nothing to do: the other part removes all.
func (p ofReplies) Shrink(context.Context, *plan.State) error { return nil }

func isLease(f plan.Flow) bool {
	stage, is := plan.StageAt(f.Table, f.Priority)
	switch stage {
	case plan.LeaseGate, plan.AnswerLeased, plan.AnswerOpen, plan.ClaimOwn, plan.ClaimReceived:
		return is
	}
	return false
}
