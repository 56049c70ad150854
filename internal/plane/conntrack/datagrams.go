package conntrack

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Datagrams is the plane of State.Datagrams on the host's kernel: no tracked connection to a From of theirs goes
// elsewhere than to a To. A client that goes on sending from one port keeps its entry, and with it an endpoint that has
// gone, for ever.
type Datagrams struct {
	ctx     context.Context // of later looks
	target  Target
	log     *slog.Logger
	recheck recheck[plan.Datagram] // by From

	mu   sync.Mutex
	done map[plan.Datagram]bool // the rows that entries were last made to follow
	sure bool                   // entries still follow done
}

var _ plane.Plane = (*Datagrams)(nil)

// NewDatagrams is a plane on the host's own connections, which are looked at again until ctx is done.
func NewDatagrams(ctx context.Context, target Target, log *slog.Logger) *Datagrams {
	p := &Datagrams{ctx: ctx, target: target, log: log}
	p.recheck.due = p.lookLater
	return p
}

// Name is part of plane.Plane.
func (p *Datagrams) Name() string { return "datagrams" }

// Grow does nothing: an entry is flushed once the rule for its successor is in place.
func (p *Datagrams) Grow(context.Context, *plan.State) error { return nil }

// Shrink flushes connections to what has changed, and has those of another program's rules looked at again.
func (p *Datagrams) Shrink(ctx context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := datagramsIn(want, false)
	changed, foreign := p.changedFrontends(now)
	if err := p.flushStale(ctx, changed, now); err != nil {
		return err
	}
	p.recheck.beginFor(lookAtOthers(), foreign...)
	p.done, p.sure = now, true
	return nil
}

// datagramsIn returns the rows that OVN translates, or the host.
func datagramsIn(want *plan.State, ovn bool) map[plan.Datagram]bool {
	rows := map[plan.Datagram]bool{}
	for d := range want.Datagrams.Rows() {
		if d.OVN == ovn {
			rows[d] = true
		}
	}
	return rows
}

// changedFrontends returns each From of rows that differ, or of all rows if nothing is sure; and those that differ by a
// row of another program's rules.
func (p *Datagrams) changedFrontends(now map[plan.Datagram]bool) (all map[plan.Datagram]bool, foreign []plan.Datagram) {
	all = map[plan.Datagram]bool{}
	for _, rows := range [][2]map[plan.Datagram]bool{{p.done, now}, {now, p.done}} {
		for d := range rows[0] {
			differs := !rows[1][d]
			if differs || !p.sure {
				all[d.Frontend()] = true
			}
			if differs && d.Foreign {
				foreign = append(foreign, d.Frontend())
			}
		}
	}
	return all, foreign
}

// lookLater flushes connections that another program's rules have made although their rows have gone.
func (p *Datagrams) lookLater(frontends []plan.Datagram) {
	from := map[plan.Datagram]bool{}
	for _, f := range frontends {
		from[f] = true
	}
	p.mu.Lock()
	right := p.done // is replaced, and never changed
	p.mu.Unlock()
	if err := p.flushStale(p.ctx, from, right); err != nil && p.ctx.Err() == nil {
		p.log.Warn("connections to endpoints that have gone may go on", "error", err)
		p.recheck.beginFor(lookAtOthers(), frontends...)
	}
}

// flushStale ends the connections to some frontends that go elsewhere than right rows say.
func (p *Datagrams) flushStale(ctx context.Context, from, right map[plan.Datagram]bool) error {
	if len(from) == 0 {
		return nil
	}
	entries, err := p.target.Dump(ctx, hostZone, frontendPatterns(from)...)
	if err != nil {
		return fmt.Errorf("look for connections to endpoints that have gone: %w", err)
	}
	stale := slices.DeleteFunc(entries, func(e Entry) bool {
		d, is := e.balancedPair()
		foreign := d
		foreign.Foreign = true
		return !is || !from[d.Frontend()] || right[d] || right[foreign]
	})
	if len(stale) == 0 {
		return nil
	}
	p.log.Info("flushing connections to endpoints that have gone", "connections", len(stale))
	if err := p.target.Flush(ctx, stale...); err != nil {
		return fmt.Errorf("flush connections to endpoints that have gone: %w", err)
	}
	return nil
}

// frontendPatterns returns patterns of the connections to some frontends; of many, patterns of their protocols alone.
func frontendPatterns(from map[plan.Datagram]bool) []Entry {
	to := map[Entry]bool{}
	for d := range from {
		e := Entry{Proto: protocols[d.Protocol], Orig: Tuple{Dst: d.From.Addr(), DstPort: d.From.Port()}}
		if len(from) > fewPatterns {
			e.Orig = Tuple{}
		}
		to[e] = true
	}
	return slices.Collect(maps.Keys(to))
}

// Forget makes the next Shrink look at all entries.
func (p *Datagrams) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sure = false
}
