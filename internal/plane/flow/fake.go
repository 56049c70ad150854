package flow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Fake is a Plane whose bridges are memory. Flows of others are what a test puts into Foreign.
type Fake struct {
	Ports Ports
	// Refuse, if set, says why the switch will not take a flow.
	Refuse func(f plan.Flow, actions string) error

	mu      sync.Mutex
	flows   map[plan.Flow]string // our flows that the bridges hold, ports as numbers
	Foreign map[plan.Flow]string
	pending []plan.Flow
	writes  int
}

var _ plane.Plane = (*Fake)(nil)

// NewFake is an empty Fake.
func NewFake(ports Ports) *Fake {
	return &Fake{Ports: ports, flows: map[plan.Flow]string{}, Foreign: map[plan.Flow]string{}}
}

func (f *Fake) Name() string { return planeName }

func (f *Fake) Grow(ctx context.Context, want *plan.State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = nil
	var errs []error
	for k, actions := range want.Flows.Rows() {
		if err := checkFlow(k, actions); err != nil {
			errs = append(errs, &plane.Refused{Plane: planeName, Owner: want.Flows.Owner(k), Row: k.String(), Err: err})
			continue
		}
		at, text, ok := f.resolvePorts(k, actions)
		if !ok {
			f.pending = append(f.pending, k)
			continue
		}
		if f.Refuse != nil {
			if err := f.Refuse(k, actions); err != nil {
				errs = append(errs, &plane.Refused{Plane: planeName, Owner: want.Flows.Owner(k), Row: k.String(),
					Err: err})
				continue
			}
		}
		if have, ok := f.flows[at]; !ok || have != text {
			f.flows[at] = text
			f.writes++
		}
	}
	slices.SortFunc(f.pending, func(a, b plan.Flow) int { return strings.Compare(a.String(), b.String()) })
	return errors.Join(errs...)
}

func (f *Fake) Shrink(ctx context.Context, want *plan.State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	keep := map[plan.Flow]bool{}
	for k, actions := range want.Flows.Rows() {
		at, _, _ := f.resolvePorts(k, actions)
		keep[at] = true
	}
	for k := range f.flows {
		if !keep[k] {
			delete(f.flows, k)
			f.writes++
		}
	}
	return nil
}

// Forget does nothing: a Fake remembers nothing but what its bridges hold.
func (f *Fake) Forget() {}

// Pending are the flows left out by the last Grow.
func (f *Fake) Pending() []plan.Flow {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pending)
}

// Lines are the flows that the bridges hold of ours, sorted.
func (f *Fake) Lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var l []string
	for k, actions := range f.flows {
		l = append(l, k.String()+" actions="+actions)
	}
	slices.Sort(l)
	return l
}

// Writes is how many flows were written or deleted so far.
func (f *Fake) Writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// Restart drops all flows, as a restart of ovs-vswitchd does.
func (f *Fake) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.flows)
	clear(f.Foreign)
}

func (f *Fake) resolvePorts(k plan.Flow, actions string) (plan.Flow, string, bool) {
	var ok, ok2 bool
	k.Match, ok = resolveNow(k.Bridge, k.Match, f.Ports)
	actions, ok2 = resolveNow(k.Bridge, actions, f.Ports)
	return k, actions, ok && ok2
}
