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

func (b *bridge) newestGeneration() uint32 { return b.generations[len(b.generations)-1] }

// bridgeFor is the bridge, its generations read from the switch.
func (p *Plane) bridgeFor(ctx context.Context, name string) (*bridge, error) {
	if b := p.bridges[name]; b != nil {
		return b, nil
	}
	flows, err := p.switches.dumpFlows(ctx, name, fmt.Sprintf("%#x/0xffffffff", Mark))
	if err != nil {
		return nil, fmt.Errorf("read the flows of bridge %s, does it exist? %w", name, err)
	}
	b := &bridge{generations: usedGenerations(flows), tables: tablesOf(flows)}
	p.bridges[name] = b
	return b, nil
}

// forgetBridge makes a bridge be read, and all its flows be written, the next time. Shrink looks for it, should no flow
// be wanted there by then.
func (p *Plane) forgetBridge(name string) {
	p.rewriteBridge(name)
	delete(p.bridges, name)
	p.adopted = false
}

// rewriteBridge makes all flows of a bridge be written the next time.
func (p *Plane) rewriteBridge(name string) {
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
			if now, ok := a.askNumber(name, port, p.ports); b.inPlace && (!ok || now != was) {
				p.rewriteBridge(name)
			}
		}
	}
}

// writeLines adds lines to the newest generation, or begins another one with them, which are all flows then. A flow
// that ends by itself is for Renew to write then: it may have ended since it was written last, and that was meant.
func (p *Plane) writeLines(ctx context.Context, name string, lines []line, n numbers) error {
	b, err := p.bridgeFor(ctx, name)
	if err != nil {
		return err
	}
	var refused []refusal
	others := lines
	if !b.inPlace {
		b.generations, b.numbers = append(b.generations, unusedGeneration(b.generations)), numbers{}
		var empty []line
		empty, others = b.emptyTables(lines)
		if refused, err = p.fillEmptyTables(ctx, name, empty); err != nil {
			return err
		}
	}
	not, err := p.writeBundle(ctx, name, others)
	if err != nil {
		return err
	}
	refused = append(refused, not...)
	b.inPlace = true
	maps.Copy(b.numbers, n)
	p.log.Debug("flows written", "bridge", name, "flows", len(lines)-len(refused), "refused", len(refused))
	return p.noteWritten(lines, refused)
}

// emptyTables are the lines of tables that have no flows of ours, and all others, without flows that end. The first
// table counts as one that has flows.
func (b *bridge) emptyTables(lines []line) (empty, others []line) {
	for _, l := range lines {
		switch {
		case expiresItself(l.flow):
		case l.flow.Table != 0 && !b.tables[l.flow.Table]:
			empty = append(empty, l)
		default:
			others = append(others, l)
		}
	}
	return empty, others
}

// fillEmptyTables writes the flows of tables that have none. It returns when the datapath knows of them, so that others
// may lead there. A connection-tracking action leads there by a number that follows from the state of the packet, and
// is the same each time. Where a former agent led to the table less than ten seconds ago, and another one emptied it,
// the datapath still has a flow that drops what has this number (OVS 3.5; TestUpgrade lost up to 4 datagrams in 1 of 4
// runs on a busy machine, with NXT_PACKET_IN2 "table_id=9 (via no_match)").
func (p *Plane) fillEmptyTables(ctx context.Context, name string, empty []line) (refused []refusal, err error) {
	led := p.bridges[name].tables[0] // else no packet has passed the bridge
	if refused, err = p.writeBundle(ctx, name, empty); err != nil || len(empty) == 0 || !led {
		return refused, err
	}
	if err := p.switches.awaitRevalidation(ctx); err != nil {
		p.log.Warn("some packets may be lost while flows change", "bridge", name, "error", err)
	}
	return refused, nil
}

// writeBundle adds lines to the newest generation, and returns those that the switch refuses.
func (p *Plane) writeBundle(ctx context.Context, name string, lines []line) ([]refusal, error) {
	b := p.bridges[name]
	for _, l := range lines {
		b.tables[l.flow.Table] = true
	}
	slices.SortFunc(lines, func(x, y line) int { return strings.Compare(x.text, y.text) })
	refused, err := p.installLines(ctx, name, b.newestGeneration(), lines)
	if err != nil {
		p.forgetBridge(name) // the part that went through is read back next time
		return nil, fmt.Errorf("write the flows of bridge %s: %w", name, err)
	}
	return refused, nil
}

// noteWritten takes down what the switch has taken, and returns what it has not.
func (p *Plane) noteWritten(lines []line, refused []refusal) error {
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

// trimBridge deletes stale flows of the newest generation, and all generations before it, or it as well when no flow is
// wanted on the bridge.
func (p *Plane) trimBridge(ctx context.Context, name string, stale []plan.Flow, want *plan.State) error {
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
		lines = append(lines, fmt.Sprintf("delete cookie=%s/-1", generationCookie(g)))
	}
	for _, f := range stale {
		lines = append(lines, b.removalLine(f))
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	if err := p.switches.sendBundle(ctx, name, lines); err != nil {
		p.forgetBridge(name) // some may be gone, which the next plan wants again
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
