package conntrack

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Datagrams is the plane of State.Datagrams on the host's kernel: no tracked UDP connection to a From of theirs goes
// elsewhere than to a To. A client that goes on sending from one port keeps its entry, and with it an endpoint that is
// no more, for ever.
type Datagrams struct {
	target Target
	log    *slog.Logger
	done   map[plan.Datagram]bool // what the entries were last made to follow
	sure   bool                   // that they still do
}

var _ plane.Plane = (*Datagrams)(nil)

// NewDatagrams is a plane on the host's own connections.
func NewDatagrams(target Target, log *slog.Logger) *Datagrams {
	return &Datagrams{target: target, log: log}
}

// Name is part of plane.Plane.
func (p *Datagrams) Name() string { return "datagrams" }

// Grow does nothing: an entry is flushed once the rule for its successor is in place.
func (p *Datagrams) Grow(context.Context, *plan.State) error { return nil }

// Shrink flushes when something has changed.
func (p *Datagrams) Shrink(ctx context.Context, want *plan.State) error {
	now := map[plan.Datagram]bool{}
	for d := range want.Datagrams.Rows() {
		if !d.OVN {
			now[d] = true
		}
	}
	if p.sure && maps.Equal(p.done, now) {
		return nil
	}
	from := map[netip.AddrPort]bool{}
	for _, ds := range []map[plan.Datagram]bool{p.done, now} {
		for d := range ds {
			from[d.From] = true
		}
	}
	if err := p.flush(ctx, from, now); err != nil {
		return err
	}
	p.done, p.sure = now, true
	return nil
}

func (p *Datagrams) flush(ctx context.Context, from map[netip.AddrPort]bool, right map[plan.Datagram]bool) error {
	if len(from) == 0 {
		return nil
	}
	entries, err := p.target.Dump(ctx, hostZone)
	if err != nil {
		return fmt.Errorf("look for UDP connections to endpoints that have gone: %w", err)
	}
	var stale []Entry
	for _, e := range entries {
		d := plan.Datagram{From: netip.AddrPortFrom(e.Orig.Dst, e.Orig.DstPort), To: netip.AddrPortFrom(e.Reply.Src,
			e.Reply.SrcPort)}
		if e.Proto == protoUDP && from[d.From] && !right[d] {
			stale = append(stale, e)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	p.log.Info("flushing UDP connections to endpoints that have gone", "connections", len(stale))
	if err := p.target.Flush(ctx, stale...); err != nil {
		return fmt.Errorf("flush UDP connections to endpoints that have gone: %w", err)
	}
	return nil
}

// Forget makes the next Shrink look at all entries.
func (p *Datagrams) Forget() { p.sure = false }
