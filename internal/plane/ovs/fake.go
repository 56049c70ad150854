package ovs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Fake is the database in memory: a Plane, and the pods' ports. Settings and ports of others are what a test puts there
// with PutForeign.
type Fake struct {
	mu      sync.Mutex
	bridges map[string]bool
	ids     map[string]string
	ports   map[plan.Port]plan.PortSpec
	foreign map[string]bool // port names
	pods    map[string]PodPort
	writes  int
	changed chan struct{}
}

var _ plane.Plane = (*Fake)(nil)

// NewFake is a switch with these bridges and nothing on them.
func NewFake(bridges ...string) *Fake {
	f := &Fake{bridges: map[string]bool{}, ids: map[string]string{}, ports: map[plan.Port]plan.PortSpec{},
		foreign: map[string]bool{},
		pods:    map[string]PodPort{}, changed: make(chan struct{}, 1)}
	for _, b := range bridges {
		f.bridges[b] = true
	}
	return f
}

func (f *Fake) Name() string { return planeName }

func (f *Fake) Forget() {}

func (f *Fake) Grow(ctx context.Context, want *plan.State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids, errs := wellFormed(want)
	for k, v := range ids {
		if have, is := f.ids[k]; !is || have != v {
			f.ids[k] = v
			f.noteWrite()
		}
	}
	for k, spec := range plan.Diff(f.ports, want.Ports, plan.Same[plan.PortSpec]).Put {
		err := checkPort(k, spec)
		switch {
		case err != nil:
		case !f.bridges[k.Bridge]:
			err = fmt.Errorf("bridge %s does not exist", k.Bridge)
		case f.foreign[k.Name]:
			err = errNotOurs
		}
		if err != nil {
			errs = append(errs, &plane.Refused{Plane: f.Name(), Owner: want.Ports.Owner(k), Row: k.Bridge + " " +
				k.Name, Err: err})
			continue
		}
		f.ports[k] = spec
		f.noteWrite()
	}
	return errors.Join(errs...)
}

func (f *Fake) Shrink(ctx context.Context, want *plan.State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range plan.Diff(f.ids, want.OVSIDs, plan.Same[string]).Del {
		delete(f.ids, k)
		f.noteWrite()
	}
	for k := range plan.Diff(f.ports, want.Ports, plan.Same[plan.PortSpec]).Del {
		delete(f.ports, k)
		f.noteWrite()
	}
	return nil
}

// noteWrite notes a change; the lock is held.
func (f *Fake) noteWrite() {
	f.writes++
	plane.SignalOnce(f.changed)
}

// Changed gets a value when something changed since the last one was taken.
func (f *Fake) Changed() <-chan struct{} { return f.changed }

// Writes is how many rows were written or deleted so far.
func (f *Fake) Writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// Held is the settings and ports of ours, as a State of no owner.
func (f *Fake) Held() *plan.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := plan.New()
	for k, v := range f.ids {
		s.OVSIDs.Put(plan.Owner{}, k, v)
	}
	for k, v := range f.ports {
		s.Ports.Put(plan.Owner{}, k, v)
	}
	return s
}

// PutForeign makes a port that is not ours.
func (f *Fake) PutForeign(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.foreign[name] = true
}

// Foreign are the names of the ports that are not ours, sorted.
func (f *Fake) Foreign() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.foreign))
}

// DeletePort removes a port behind the plane's back.
func (f *Fake) DeletePort(k plan.Port) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.ports, k)
	f.noteWrite()
}

// AddPodPort is DB.AddPodPort; the port is installed at once.
func (f *Fake) AddPodPort(ctx context.Context, p PodPort) error {
	if err := p.checkAddresses(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, other := range f.pods {
		if name != p.HostIface && other.IfaceID == p.IfaceID {
			other.IfaceID = ""
			f.pods[name] = other
		}
	}
	p.Installed = true
	p.IPs = slices.Clone(p.IPs)
	f.pods[p.HostIface] = p
	f.noteWrite()
	return nil
}

// DelPodPort is DB.DelPodPort.
func (f *Fake) DelPodPort(ctx context.Context, hostIface string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pods, hostIface)
	f.noteWrite()
	return nil
}

// SetEgressPaused is DB.SetEgressPaused.
func (f *Fake) SetEgressPaused(ctx context.Context, hostIface string, paused bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.pods[hostIface]
	if !ok {
		return fmt.Errorf("pause egress of %s: it is no pod's port", hostIface)
	}
	p.EgressPaused = paused
	f.pods[hostIface] = p
	f.noteWrite()
	return nil
}

// PodPorts is DB.PodPorts.
func (f *Fake) PodPorts(ctx context.Context) ([]PodPort, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := slices.Collect(maps.Values(f.pods))
	slices.SortFunc(out, func(a, b PodPort) int { return strings.Compare(a.HostIface, b.HostIface) })
	return out, nil
}

// WaitInstalled is DB.WaitInstalled.
func (f *Fake) WaitInstalled(ctx context.Context, hostIface string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.pods[hostIface]; !ok {
		return fmt.Errorf("wait for the flows of port %s: there is no such port", hostIface)
	}
	return nil
}

// RemoveBridges is DB.RemoveBridges; ports of others are on no bridge here.
func (f *Fake) RemoveBridges(_ context.Context, _ string, names ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		delete(f.bridges, name)
		maps.DeleteFunc(f.ports, func(k plan.Port, _ plan.PortSpec) bool { return k.Bridge == name })
		maps.DeleteFunc(f.pods, func(_ string, p PodPort) bool { return p.Bridge == name })
	}
	f.noteWrite()
	return nil
}

// AwaitSwitchd is DB.AwaitSwitchd: all is done at once.
func (f *Fake) AwaitSwitchd(context.Context) error { return nil }

// BridgeNames returns the names of the bridges, sorted.
func (f *Fake) BridgeNames() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.bridges))
}
