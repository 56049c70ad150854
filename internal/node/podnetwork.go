package node

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/egret-net/egret/internal/world"
)

// podNetwork is what the last round left for pods that start. Each goroutine may read it.
type podNetwork struct {
	*watchers
	started atomic.Bool
	late    atomic.Pointer[string] // why the targets do not hold the plan
	subnets atomic.Pointer[[]netip.Prefix]
	podMTU  atomic.Int32
}

// takeNetwork takes in what a round of a node left.
func (p *podNetwork) takeNetwork(n *world.Node, mtu int, o Outcome) {
	late, subnets := whyLate(n, o), n.Subnets
	p.late.Store(&late)
	p.subnets.Store(&subnets)
	p.podMTU.Store(int32(mtu))
	if late == "" {
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
		return fmt.Errorf("the targets do not hold the plan yet: %s: see the agent's log", *p.late.Load())
	}
	return nil
}

// whyLate returns why the targets do not hold the plan after a round, or "".
func whyLate(n *world.Node, o Outcome) string {
	switch {
	case o.Err != nil:
		return firstLine(o.Err)
	case n.ID == 0:
		return "egret-controller has not given the node a number"
	case o.Unconfirmed:
		return "ovn-northd and ovn-controller have not carried out what is in the Northbound"
	}
	return ""
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
