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
	ofctl ofctl
	ports Ports
	log   *slog.Logger

	mu      sync.Mutex
	adopted bool // bridges holds what the switch had before us
	bridges map[string]*bridge
	pending []plan.Flow
}

var _ plane.Plane = (*Plane)(nil)

// bridge is what we know of one bridge's flows of ours.
type bridge struct {
	generations []uint32 // those that may have flows; the last one is the newest
	written     []string // texts of the newest generation
	refused     []error
}

// New is a plane on the bridges whose sockets are in runDir (/run/openvswitch). command is ovs-ofctl, or a path to it.
func New(command, runDir string, ports Ports, log *slog.Logger) *Plane {
	return &Plane{ofctl: ofctl{command, runDir}, ports: ports, log: log, bridges: map[string]*bridge{}}
}

func (p *Plane) Name() string { return planeName }

// Grow installs all flows whose ports are there; the others are Pending. A bridge that does not answer is an error, a
// flow that its switch refuses is a Refused; neither keeps the flows of another bridge out.
func (p *Plane) Grow(ctx context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines, pending, errs := render(want.Flows, p.ports)
	p.pending = pending
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		errs = append(errs, p.write(ctx, name, lines[name]))
	}
	return errors.Join(errs...)
}

// Shrink deletes what want does not have. Bridges that want does not name are looked at once after a start.
func (p *Plane) Shrink(ctx context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines, _, _ := render(want.Flows, p.ports) // Grow has said what is refused
	if err := p.adopt(ctx); err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.bridges)) {
		errs = append(errs, p.trim(ctx, name, len(lines[name]) > 0))
	}
	return errors.Join(errs...)
}

// Forget makes the next call write everything again: after ovs-vswitchd has started anew every flow is gone.
func (p *Plane) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adopted, p.bridges = false, map[string]*bridge{}
}

// Renew makes the flows that end by themselves (hard_timeout) last for that time again, or be again if they have ended.
func (p *Plane) Renew(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.bridges)) {
		b := p.bridges[name]
		if again := ending(b.written); len(again) > 0 {
			errs = append(errs, p.ofctl.bundle(ctx, name, additions(b.generations[len(b.generations)-1], again)))
		}
	}
	return errors.Join(errs...)
}

// ending are those of texts that have a time.
func ending(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(t string) bool {
		match, _, _ := strings.Cut(t, " actions=")
		return !strings.Contains(match, "hard_timeout=")
	})
}

// Pending are the flows left out by the last Grow, for a port they name is not there yet.
func (p *Plane) Pending() []plan.Flow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.pending)
}

// adopt finds flows that a former process left on bridges that nobody wants any more.
func (p *Plane) adopt(ctx context.Context) error {
	if p.adopted {
		return nil
	}
	names, err := p.ofctl.bridges()
	if err != nil {
		return fmt.Errorf("list bridges: %w", err)
	}
	for _, name := range names {
		if _, err := p.know(ctx, name); err != nil {
			p.log.Debug("bridge does not answer", "bridge", name, "err", err)
		}
	}
	p.adopted = true
	return nil
}

// know is the bridge, its generations read from the switch.
func (p *Plane) know(ctx context.Context, name string) (*bridge, error) {
	if b := p.bridges[name]; b != nil {
		return b, nil
	}
	flows, err := p.ofctl.dump(ctx, name, fmt.Sprintf("%#x/0xffffffff", Mark))
	if err != nil {
		return nil, fmt.Errorf("read the flows of bridge %s, does it exist? %w", name, err)
	}
	b := &bridge{generations: generations(flows)}
	p.bridges[name] = b
	return b, nil
}

// write installs lines under a new generation, unless they are what was written last.
func (p *Plane) write(ctx context.Context, name string, lines []line) error {
	b, err := p.know(ctx, name)
	if err != nil {
		return err
	}
	texts := texts(lines)
	if slices.Equal(texts, b.written) {
		return errors.Join(b.refused...)
	}
	generation := next(b.generations)
	refused, err := p.install(ctx, name, generation, lines)
	if err != nil {
		delete(p.bridges, name) // what went through of it is read back next time
		return fmt.Errorf("write the flows of bridge %s: %w", name, err)
	}
	b.generations, b.written, b.refused = append(b.generations, generation), texts, refused
	p.log.Debug("flows written", "bridge", name, "flows", len(lines)-len(refused), "refused", len(refused))
	return errors.Join(refused...)
}

// trim deletes all generations but the newest, or all of them when no flow is wanted on the bridge.
func (p *Plane) trim(ctx context.Context, name string, wanted bool) error {
	b := p.bridges[name]
	old := b.generations
	if wanted {
		if b.written == nil {
			return nil // the newest generation is not in place: the former ones still serve
		}
		old = old[:len(old)-1]
	}
	if len(old) == 0 {
		return nil
	}
	var lines []string
	for _, g := range old {
		lines = append(lines, fmt.Sprintf("delete cookie=%s/-1", cookie(g)))
	}
	if err := p.ofctl.bundle(ctx, name, lines); err != nil {
		return fmt.Errorf("delete former flows of bridge %s: %w", name, err)
	}
	b.generations = b.generations[len(old):]
	if !wanted {
		b.written, b.refused = nil, nil
	}
	return nil
}
