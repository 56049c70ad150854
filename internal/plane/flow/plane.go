package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Mark is the low half of the cookie of every flow of ours: `ovs-ofctl dump-flows breth0 cookie=0xdeff105/0xffffffff`.
const Mark = 0xdeff105

const planeName = "flow"

// Plane writes flows with ovs-ofctl.
type Plane struct {
	switches switches
	ports    Ports
	log      *slog.Logger

	mu            sync.Mutex
	grown, shrunk plan.Follower[plan.Flow]
	adopted       bool // bridges holds what the switch had before us
	bridges       map[string]*bridge
	held          map[plan.Flow]string // flows of the bridges that are written, as the plan had them
	pending       map[plan.Flow]bool
}

var _ plane.Plane = (*Plane)(nil)

// bridge is what we know of one bridge's flows of ours.
type bridge struct {
	generations []uint32 // those that may have flows; the last one is the newest
	inPlace     bool     // the newest has the flows in held
	numbers     numbers  // with which they were written
	// tables are those that have had flows of ours since they were last read.
	tables map[int]bool
}

// New is a plane on the bridges whose sockets are in runDir (/run/openvswitch). command is ovs-ofctl, or a path to it;
// those that are started ahead end with ctx.
func New(ctx context.Context, command, runDir string, ports Ports, log *slog.Logger) *Plane {
	return newPlane(ofctl{command, runDir, newSpares(ctx)}, ports, log)
}

func newPlane(s switches, ports Ports, log *slog.Logger) *Plane {
	return &Plane{
		switches: s, ports: ports, log: log, bridges: map[string]*bridge{}, held: map[plan.Flow]string{},
		pending: map[plan.Flow]bool{},
		grown:   plan.Follow[plan.Flow](plan.InFlows), shrunk: plan.Follow[plan.Flow](plan.InFlows),
	}
}

func (p *Plane) Name() string { return planeName }

// Grow installs all flows whose ports are there; the others are Pending. A bridge that does not answer is an error, a
// flow that its switch refuses is a Refused; neither keeps the flows of another bridge out. While there is such a flow,
// all flows are compared the next time.
func (p *Plane) Grow(ctx context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	numbers := asked{}
	p.rewriteRenumbered(numbers)
	missing := plan.DiffOf(p.grown.Take(want), p.held, want.Flows, plan.Same).Put
	clear(p.pending)
	var errs []error
	lines := map[string][]line{}
	for f := range missing {
		l, ok, err := p.renderFlow(want, f, numbers)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !ok:
			p.pending[f] = true
		default:
			lines[f.Bridge] = append(lines[f.Bridge], l)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		errs = append(errs, p.writeLines(ctx, name, lines[name], numbers.numbersOf(name)))
	}
	err := errors.Join(errs...)
	if err == nil && len(p.pending) == 0 {
		p.grown.Done(want)
	}
	return err
}

// Shrink deletes what want does not have. Bridges that want does not name are looked at once after a start.
func (p *Plane) Shrink(ctx context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.adoptBridges(ctx); err != nil {
		return err
	}
	stale := map[string][]plan.Flow{}
	d := plan.DiffOf(p.shrunk.Take(want), p.held, want.Flows, plan.Same)
	for f := range d.Del {
		stale[f.Bridge] = append(stale[f.Bridge], f)
	}
	for f := range d.Put { // its successor was refused, or waits for a port
		if _, held := p.held[f]; held {
			stale[f.Bridge] = append(stale[f.Bridge], f)
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.bridges)) {
		errs = append(errs, p.trimBridge(ctx, name, stale[name], want))
	}
	err := errors.Join(errs...)
	if err == nil {
		p.shrunk.Done(want)
	}
	return err
}

// Forget makes the next call write everything again: after a restart of ovs-vswitchd every flow is gone.
func (p *Plane) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.bridges {
		p.forgetBridge(name)
	}
	p.adopted = false
	p.grown.Forget()
	p.shrunk.Forget()
}

// Renew makes the flows that end by themselves (hard_timeout) last for that time again, or be again if they have ended,
// or were left out when all flows of their bridge were written: Grow writes them only where they are new. The bridge
// forgets the addresses that it has learnt by then, for they overrode these: when they end, only addresses learnt from
// now on count.
func (p *Plane) Renew(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ending := map[string][]string{}
	for f, actions := range p.held {
		if b := p.bridges[f.Bridge]; expiresItself(f) {
			ending[f.Bridge] = append(ending[f.Bridge], additionLine(b.newestGeneration(), b.writtenText(f, actions)))
		}
	}
	var errs []error
	for name, lines := range ending {
		lines = append(lines, fmt.Sprintf("delete cookie=%#x/-1", plan.LearntCookie))
		errs = append(errs, p.switches.sendBundle(ctx, name, lines))
	}
	return errors.Join(errs...)
}

// Pending are the flows left out by the last Grow, for a port they name is not there yet, sorted.
func (p *Plane) Pending() []plan.Flow {
	p.mu.Lock()
	defer p.mu.Unlock()
	byText := func(a, b plan.Flow) int { return strings.Compare(a.String(), b.String()) }
	return slices.SortedFunc(maps.Keys(p.pending), byText)
}

// adoptBridges finds flows that a former process left on bridges that nobody wants any more.
func (p *Plane) adoptBridges(ctx context.Context) error {
	if p.adopted {
		return nil
	}
	names, err := p.switches.listBridges()
	if err != nil {
		return fmt.Errorf("list bridges: %w", err)
	}
	for _, name := range names {
		if _, err := p.bridgeFor(ctx, name); err != nil {
			p.log.Debug("bridge does not answer", "bridge", name, "err", err)
		}
	}
	p.adopted = true
	return nil
}
