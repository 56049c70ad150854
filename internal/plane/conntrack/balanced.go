package conntrack

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovs/unixctl"
)

// Pairs is where OVN's load balancers track connections: Switch, and Fake.
type Pairs interface {
	// FlushPairs ends the UDP connections to each From that are translated to its To, in all zones.
	FlushPairs(ctx context.Context, pairs ...plan.Datagram) error
	// FlushUnanswered ends those of them in one zone on which nothing has come back.
	FlushUnanswered(ctx context.Context, zone int, pairs ...plan.Datagram) error
}

// Balanced is the plane of State.Datagrams in OVS: when a load balancer loses an endpoint, UDP connections to it end.
// ovn-controller flushes them when it has changed the flows (ct_flush), and a packet that ovs-vswitchd's datapath still
// sends by a former flow makes its entry again: here it is flushed once more, when that is over. When a load balancer
// gets its first endpoint, what was begun before, and is translated to nothing, ends likewise: as connections that are
// there already, they would not be translated as new ones are. With each new endpoint, what goes there and is not
// answered ends: OVN 25.03 has a gateway router translate the source of the first packet and of those that follow the
// first answer (lb_force_snat). Where that is lost, or the endpoint was not listening yet, all others arrive with the
// client's address, and their answers leave another way; a client that does not pause would never be answered.
type Balanced struct {
	ctx    context.Context
	target Pairs
	zones  Zones
	router string // the node's gateway router
	log    *slog.Logger
	pauses []time.Duration

	mu   sync.Mutex
	held map[plan.Datagram]bool
}

var _ plane.Plane = (*Balanced)(nil)

// NewBalanced is a plane that flushes until ctx is done. Router is the node's gateway router.
func NewBalanced(ctx context.Context, target Pairs, zones Zones, router string, log *slog.Logger) *Balanced {
	return &Balanced{ctx: ctx, target: target, zones: zones, router: router, log: log, pauses: lookAgain()}
}

// Name is part of plane.Plane.
func (p *Balanced) Name() string { return "balanced" }

// Grow does nothing: what goes to a new endpoint is looked at when it had time to answer.
func (p *Balanced) Grow(context.Context, *plan.State) error { return nil }

// Shrink notes what has gone and what is new, and has their connections flushed after a while. What was there before
// this process is not looked at.
func (p *Balanced) Shrink(_ context.Context, want *plan.State) error {
	now := map[plan.Datagram]bool{}
	for d := range want.Datagrams.Rows() {
		if d.OVN {
			now[d] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	gone := append(begun(p.held, now), lacking(p.held, now)...)
	var fresh []plan.Datagram
	if p.held != nil {
		fresh = lacking(now, p.held)
	}
	p.held = now
	if len(gone)+len(fresh) > 0 {
		for _, pause := range p.pauses {
			time.AfterFunc(pause, func() { p.flush(gone, fresh) })
		}
	}
	return nil
}

// lacking are those that another set does not have.
func lacking(of, in map[plan.Datagram]bool) (out []plan.Datagram) {
	for d := range of {
		if !in[d] {
			out = append(out, d)
		}
	}
	return out
}

// begun are the connections, translated to nothing, of those that have an endpoint now and had none before.
func begun(before, now map[plan.Datagram]bool) []plan.Datagram {
	if before == nil {
		return nil
	}
	served := map[netip.AddrPort]bool{}
	for d := range before {
		served[d.From] = true
	}
	var out []plan.Datagram
	for d := range now {
		if !served[d.From] {
			served[d.From] = true
			out = append(out, plan.Datagram{From: d.From, To: d.From, OVN: true})
		}
	}
	return out
}

// flush ends what goes to endpoints that have not come back, and what is not answered by new ones that are still there.
func (p *Balanced) flush(gone, fresh []plan.Datagram) {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	isBack := func(d plan.Datagram) bool { return held[d] }
	isNoMore := func(d plan.Datagram) bool { return !held[d] }
	if gone = slices.DeleteFunc(slices.Clone(gone), isBack); len(gone) > 0 && p.ctx.Err() == nil {
		p.warn("that have gone, or that were none", len(gone), p.target.FlushPairs(p.ctx, gone...))
	}
	if fresh = slices.DeleteFunc(slices.Clone(fresh), isNoMore); len(fresh) > 0 && p.ctx.Err() == nil {
		p.flushUnanswered(fresh)
	}
}

func (p *Balanced) flushUnanswered(pairs []plan.Datagram) {
	if zone, ok := p.zones.CTZone(p.ctx, plan.DNATZone(p.router)); ok { // else it has no flows yet
		p.warn("that are new and do not answer", len(pairs), p.target.FlushUnanswered(p.ctx, zone, pairs...))
	}
}

func (p *Balanced) warn(which string, endpoints int, err error) {
	if err != nil {
		p.log.Warn("UDP connections to endpoints "+which+" may go on: could not flush them", "endpoints", endpoints,
			"error", err)
	}
}

// Forget is part of plane.Plane: what was flushed stays so.
func (p *Balanced) Forget() {}

// FlushPairs is part of Pairs: one call a pair and datapath, which goes through all of its connections.
func (s Switch) FlushPairs(ctx context.Context, pairs ...plan.Datagram) error {
	return s.each(ctx, func(c *unixctl.Conn, datapath string) error {
		for _, d := range pairs {
			if _, err := c.Call(ctx, "dpctl/flush-conntrack", datapath, udpEnd("dst", d.From),
				udpEnd("src", d.To)); err != nil {
				return fmt.Errorf("flush UDP connections from %s to %s: %w", d.From, d.To, err)
			}
		}
		return nil
	})
}

// udpEnd is one end of a tuple, for all connections that have it (OVS 3.1 and later).
func udpEnd(side string, at netip.AddrPort) string {
	family := "nw"
	if at.Addr().Is6() {
		family = "ipv6"
	}
	return fmt.Sprintf("ct_%s_%s=%s,ct_nw_proto=%d,ct_tp_%s=%d", family, side, at.Addr(), protoUDP, side, at.Port())
}
