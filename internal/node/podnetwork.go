package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// podNetwork is what the last round left for pods that start. Each goroutine may read it.
type podNetwork struct {
	*watchers
	started atomic.Bool
	late    atomic.Pointer[string] // why the targets do not hold the plan
	// complete: one plan of this process was carried out with all of the node's own rows. refused is a text about those
	// that a target refused in the last plan that was carried out; "" for no row.
	complete atomic.Bool
	refused  atomic.Pointer[string]
	subnets  atomic.Pointer[[]netip.Prefix]
	podMTU   atomic.Int32
}

// takeNetwork takes in what a round of a node left.
func (p *podNetwork) takeNetwork(n *world.Node, mtu int, o Outcome) {
	late, refused, subnets := whyLate(n, o), describeRefused(n.Name, o.Refused), n.Subnets
	p.late.Store(&late)
	p.subnets.Store(&subnets)
	p.podMTU.Store(int32(mtu))
	if late == "" {
		p.refused.Store(&refused)
		p.complete.Store(refused == "" || p.complete.Load())
		p.started.Store(true)
	}
}

// describeRefused describes the refused rows that a node has whatever pods, Services and egress IPs there are: its own,
// its host's and those of the default network. "": no such row was refused. Rows of other objects do not count, so that
// nobody who may write one stops a rollout of agents.
func describeRefused(node string, refused []*plane.Refused) string {
	var texts []string
	for _, r := range refused {
		// The removal of a former row has no owner.
		if r.Owner.Feature != "" && (r.Owner.Object == ref.Object{} || r.Owner.Object == ref.Of(ref.Node, node)) {
			texts = append(texts, firstLine(r))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("rows of the node itself were refused (%d of them): %s: see the problems of EgressNode %s",
		len(texts), slices.Min(texts), node)
}

// missingOfPlan returns what the targets lack of the plan, or "". With a plan that was carried out once, they lack
// nothing.
func (p *podNetwork) missingOfPlan() string {
	if err := p.Ready(); err != nil {
		return err.Error()
	}
	if p.complete.Load() {
		return ""
	}
	return *p.refused.Load()
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
