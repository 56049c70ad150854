package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

func (b *bridge) newest() uint32 { return b.generations[len(b.generations)-1] }

// know is the bridge, its generations read from the switch.
func (p *Plane) know(ctx context.Context, name string) (*bridge, error) {
	if b := p.bridges[name]; b != nil {
		return b, nil
	}
	flows, err := p.switches.dump(ctx, name, fmt.Sprintf("%#x/0xffffffff", Mark))
	if err != nil {
		return nil, fmt.Errorf("read the flows of bridge %s, does it exist? %w", name, err)
	}
	b := &bridge{generations: generations(flows), tables: tablesOf(flows)}
	p.bridges[name] = b
	return b, nil
}

// forget makes a bridge be read, and all its flows be written, the next time. Shrink looks for it, should no flow be
// wanted there by then.
func (p *Plane) forget(name string) {
	p.rewrite(name)
	delete(p.bridges, name)
	p.adopted = false
}

// rewrite makes all flows of a bridge be written the next time.
func (p *Plane) rewrite(name string) {
	if b := p.bridges[name]; b != nil {
		b.inPlace = false
	}
	maps.DeleteFunc(p.held, func(f plan.Flow, _ string) bool { return f.Bridge == name })
	p.grown.Forget()
}

// rewriteRenumbered has all flows of a bridge written again where a port has another number than they were written
// with.
func (p *Plane) rewriteRenumbered(a asked) {
	for name, b := range p.bridges {
		for port, was := range b.numbers {
			if now, ok := a.number(name, port, p.ports); b.inPlace && (!ok || now != was) {
				p.rewrite(name)
			}
		}
	}
}

// write adds lines to the newest generation, or begins another one with them, which are all flows then. A flow that
// ends by itself is for Renew to write then: it may have ended since it was written last, and that was meant.
func (p *Plane) write(ctx context.Context, name string, lines []line, n numbers) error {
	b, err := p.know(ctx, name)
	if err != nil {
		return err
	}
	bundles := [][]line{lines}
	if !b.inPlace {
		b.generations, b.numbers = append(b.generations, next(b.generations)), numbers{}
		bundles = b.emptyFirst(slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return ends(l.flow) }))
	}
	var refused []refusal
	for _, now := range bundles {
		for _, l := range now {
			b.tables[l.flow.Table] = true
		}
		slices.SortFunc(now, func(x, y line) int { return strings.Compare(x.text, y.text) })
		not, err := p.install(ctx, name, b.newest(), now)
		if err != nil {
			p.forget(name) // what went through of it is read back next time
			return fmt.Errorf("write the flows of bridge %s: %w", name, err)
		}
		refused = append(refused, not...)
	}
	b.inPlace = true
	maps.Copy(b.numbers, n)
	p.log.Debug("flows written", "bridge", name, "flows", len(lines)-len(refused), "refused", len(refused))
	return p.note(lines, refused)
}

// emptyFirst are the flows of tables that have none, but for the first table, and then all others. With one bundle for
// both, a node's first agent that led to a table without flows lost some datagrams (OVS 3.5, TestUpgrade: 7 of 8
// times, never with two): as if a packet found the first table's flows new, and the other still empty.
func (b *bridge) emptyFirst(lines []line) (bundles [][]line) {
	empty := func(l line) bool { return l.flow.Table != 0 && !b.tables[l.flow.Table] }
	full := slices.DeleteFunc(slices.Clone(lines), empty)
	if len(full) == len(lines) {
		return [][]line{lines}
	}
	return [][]line{slices.DeleteFunc(lines, func(l line) bool { return !empty(l) }), full}
}

// note takes down what the switch has taken, and returns what it has not.
func (p *Plane) note(lines []line, refused []refusal) error {
	not := map[plan.Flow]bool{}
	var errs []error
	for _, r := range refused {
		not[r.flow] = true
		errs = append(errs, &plane.Refused{Plane: planeName, Owner: r.owner, Row: r.flow.String(), Err: r.err})
	}
	for _, l := range lines {
		if !not[l.flow] {
			p.held[l.flow] = l.actions
		}
	}
	return errors.Join(errs...)
}

// trim deletes stale flows of the newest generation, and all generations before it, or it as well when no flow is
// wanted on the bridge.
func (p *Plane) trim(ctx context.Context, name string, stale []plan.Flow, want *plan.State) error {
	b := p.bridges[name]
	former := b.generations
	switch {
	case b.inPlace:
		former = former[:len(former)-1]
	case p.hasFlows(want, name):
		return nil // the newest generation is not in place: the former ones still serve
	}
	var lines []string
	for _, g := range former {
		lines = append(lines, fmt.Sprintf("delete cookie=%s/-1", cookie(g)))
	}
	for _, f := range stale {
		lines = append(lines, b.removal(f))
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	if err := p.switches.bundle(ctx, name, lines); err != nil {
		p.forget(name) // some may be gone, which the next plan wants again
		return fmt.Errorf("delete former flows of bridge %s: %w", name, err)
	}
	b.generations = b.generations[len(former):]
	for _, f := range stale {
		delete(p.held, f)
	}
	return nil
}

// hasFlows says whether any flow is wanted on a bridge that has its ports.
func (p *Plane) hasFlows(want *plan.State, bridge string) bool {
	for f := range want.Flows {
		if f.Bridge == bridge && !p.pending[f] {
			return true
		}
	}
	return false
}
