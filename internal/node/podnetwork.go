package node

import (
	"errors"
	"net/netip"
	"sync/atomic"

	"github.com/egret-net/egret/internal/world"
)

// podNetwork is what the last round left for pods that start. Each goroutine may read it.
type podNetwork struct {
	*watchers
	started atomic.Bool
	subnets atomic.Pointer[[]netip.Prefix]
	podMTU  atomic.Int32
}

// takeNetwork takes in what a round of a node left.
func (p *podNetwork) takeNetwork(n *world.Node, mtu int, o Outcome) {
	subnets := n.Subnets
	p.subnets.Store(&subnets)
	p.podMTU.Store(int32(mtu))
	if o.Err == nil && !o.Unconfirmed && n.ID != 0 {
		p.started.Store(true)
	}
}

// Ready is nil when pods can be attached.
func (p *podNetwork) Ready() error {
	if len(p.Subnets()) == 0 {
		return errors.New("the node has no pod subnet yet: is egret-controller running, and has the cluster subnet " +
			"room?")
	}
	if !p.started.Load() {
		return errors.New("the targets do not hold the plan yet: see the agent's log for what they refuse")
	}
	return nil
}

// Subnets are the node's pod subnets.
func (p *podNetwork) Subnets() []netip.Prefix {
	if subnets := p.subnets.Load(); subnets != nil {
		return *subnets
	}
	return nil
}

// MTU is that of pods' interfaces.
func (p *podNetwork) MTU() int { return int(p.podMTU.Load()) }
