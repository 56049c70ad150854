package conntrack

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Datagrams is the plane of State.Datagrams on the host's kernel: no tracked connection to a From of theirs goes
// elsewhere than to a To. A client that goes on sending from one port keeps its entry, and with it an endpoint that has
// gone, for ever.
type Datagrams struct {
	target  Target
	log     *slog.Logger
	again   chan struct{}
	recheck recheck

	mu      sync.Mutex
	done    map[plan.Datagram]bool      // the rows that entries were last made to follow
	foreign map[plan.Datagram]time.Time // each From of other programs' rules, and when a row last had it
	sure    bool                        // entries still follow done
	due     bool                        // but perhaps those of other programs' rules
}

var _ plane.Plane = (*Datagrams)(nil)

// NewDatagrams is a plane on the host's own connections.
func NewDatagrams(target Target, log *slog.Logger) *Datagrams {
	p := &Datagrams{target: target, log: log, again: make(chan struct{}, 1), foreign: map[plan.Datagram]time.Time{}}
	p.recheck.due = func([]plan.Source) {
		p.mu.Lock()
		p.due = true
		p.mu.Unlock()
		plane.SignalOnce(p.again)
	}
	return p
}

// lookAtOthers is when connections are looked at after a change of what another program translates. A pod that is
// deleted by force ends later than its object, within its grace period of 30 s in most cases: its rules are there until
// then, and make entries that nothing else ends.
func lookAtOthers() []time.Duration { return append(lookAgain(), time.Minute) }

// remembered is how long after that change entries are looked for: longer than lookAtOthers.
const remembered = 2 * time.Minute

// Name is part of plane.Plane.
func (p *Datagrams) Name() string { return "datagrams" }

// Again is signalled when connections must be looked at though nothing has changed: Shrink looks at its next call.
func (p *Datagrams) Again() <-chan struct{} { return p.again }

// Grow does nothing: an entry is flushed once the rule for its successor is in place.
func (p *Datagrams) Grow(context.Context, *plan.State) error { return nil }

// Shrink flushes when something has changed, and some times more after a change of another program's rules. It looks at
// connections to what has changed.
func (p *Datagrams) Shrink(ctx context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := map[plan.Datagram]bool{}
	for d := range want.Datagrams.Rows() {
		if !d.OVN {
			now[d] = true
		}
	}
	from := p.frontendsToCheck(now)
	if err := p.flushStale(ctx, from, expectedEntries(now)); err != nil {
		return err
	}
	if foreignDiffer(p.done, now) {
		p.recheck.beginFor(lookAtOthers(), plan.Source{})
	}
	p.done, p.sure, p.due = now, true, false
	return nil
}

// frontendsToCheck returns each From whose entries must be looked at: those of rows that differ, or of all if nothing
// is sure, and when it is time those of other programs' rules that have gone a short while ago.
func (p *Datagrams) frontendsToCheck(now map[plan.Datagram]bool) map[plan.Datagram]bool {
	from := map[plan.Datagram]bool{}
	for _, rows := range [][2]map[plan.Datagram]bool{{p.done, now}, {now, p.done}} {
		for d := range rows[0] {
			if !p.sure || !rows[1][d] {
				from[d.Frontend()] = true
			}
			if d.Foreign {
				p.foreign[d.Frontend()] = time.Now()
			}
		}
	}
	for f, last := range p.foreign {
		switch {
		case time.Since(last) > remembered:
			delete(p.foreign, f)
		case p.due || !p.sure:
			from[f] = true
		}
	}
	return from
}

// expectedEntries returns the rows as entries of the kernel say them.
func expectedEntries(rows map[plan.Datagram]bool) map[plan.Datagram]bool {
	out := make(map[plan.Datagram]bool, len(rows))
	for d := range rows {
		d.Foreign = false
		out[d] = true
	}
	return out
}

// foreignDiffer reports whether one has a row of another program's rules that the other has not.
func foreignDiffer(a, b map[plan.Datagram]bool) bool {
	for _, rows := range [][2]map[plan.Datagram]bool{{a, b}, {b, a}} {
		for d := range rows[0] {
			if d.Foreign && !rows[1][d] {
				return true
			}
		}
	}
	return false
}

func (p *Datagrams) flushStale(ctx context.Context, from, right map[plan.Datagram]bool) error {
	if len(from) == 0 {
		return nil
	}
	entries, err := p.target.Dump(ctx, hostZone, frontendPatterns(from)...)
	if err != nil {
		return fmt.Errorf("look for connections to endpoints that have gone: %w", err)
	}
	var stale []Entry
	for _, e := range entries {
		if d, is := e.balancedPair(); is && from[d.Frontend()] && !right[d] {
			stale = append(stale, e)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	p.log.Info("flushing connections to endpoints that have gone", "connections", len(stale))
	if err := p.target.Flush(ctx, stale...); err != nil {
		return fmt.Errorf("flush connections to endpoints that have gone: %w", err)
	}
	return nil
}

// frontendPatterns are what is like the connections to some frontends: to many, all of their protocols.
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
