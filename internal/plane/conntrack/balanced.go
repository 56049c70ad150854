package conntrack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovs/unixctl"
)

// Pairs is where OVN's load balancers track connections: Switch, and Fake.
type Pairs interface {
	// FlushPairs ends the connections to each From that are translated to its To, in all zones.
	FlushPairs(ctx context.Context, pairs ...plan.Datagram) error
}

// Balanced is the plane of State.Datagrams in OVS: when a load balancer loses an endpoint, connections to it end.
// ovn-controller flushes them when it has changed the flows (ct_flush), and a packet that ovs-vswitchd's datapath still
// sends by a former flow makes its entry again: that one is flushed later. When a load balancer gets its first
// endpoint, connections that were begun before, and are translated to nothing, end likewise: as connections that are
// there already, they would not be translated as new ones are.
type Balanced struct {
	ctx     context.Context
	target  Pairs
	log     *slog.Logger
	recheck recheck[plan.Datagram]

	mu   sync.Mutex
	held map[plan.Datagram]bool
}

var _ plane.Plane = (*Balanced)(nil)

// NewBalanced is a plane that flushes until ctx is done.
func NewBalanced(ctx context.Context, target Pairs, log *slog.Logger) *Balanced {
	p := &Balanced{ctx: ctx, target: target, log: log}
	p.recheck.due = p.flushPairs
	return p
}

// Name is part of plane.Plane.
func (p *Balanced) Name() string { return "balanced" }

// Grow does nothing: new endpoints have no connections.
func (p *Balanced) Grow(context.Context, *plan.State) error { return nil }

// Shrink notes which endpoints have gone: their connections are flushed later. Those that had gone before this process
// began are not looked at.
func (p *Balanced) Shrink(_ context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := datagramsIn(want, true)
	gone := newlyBalanced(p.held, now)
	for d := range p.held {
		if !now[d] {
			gone = append(gone, d)
		}
	}
	p.held = now
	p.recheck.beginFor(lookAgain(), gone...)
	return nil
}

// newlyBalanced returns the connections, translated to nothing, to frontends that have an endpoint now and had none
// before.
func newlyBalanced(before, now map[plan.Datagram]bool) []plan.Datagram {
	if before == nil {
		return nil
	}
	served := map[plan.Datagram]bool{}
	for d := range before {
		served[d.Frontend()] = true
	}
	var out []plan.Datagram
	for d := range now {
		if !served[d.Frontend()] {
			served[d.Frontend()] = true
			out = append(out, plan.Datagram{Protocol: d.Protocol, From: d.From, To: d.From, OVN: true})
		}
	}
	return out
}

// flushPairs leaves out endpoints that have come back.
func (p *Balanced) flushPairs(pairs []plan.Datagram) {
	p.mu.Lock()
	gone := slices.DeleteFunc(pairs, func(d plan.Datagram) bool { return p.held[d] })
	p.mu.Unlock()
	if len(gone) == 0 || p.ctx.Err() != nil {
		return
	}
	if err := p.target.FlushPairs(p.ctx, gone...); err != nil {
		p.log.Warn("connections to endpoints that have gone, or that were none, may go on: could not flush them",
			"endpoints", len(gone), "error", err)
	}
}

// Forget is part of plane.Plane. Flushed connections stay flushed.
func (p *Balanced) Forget() {}

// fewPairs are flushed one by one: each call goes through all connections of a datapath. Where there are more pairs,
// the connections are listed, and flushed each: a Service has up to tens of thousands of pairs, and seldom connections
// to many.
const fewPairs = 16

// FlushPairs is part of Pairs.
func (s Switch) FlushPairs(ctx context.Context, pairs ...plan.Datagram) error {
	return s.eachDatapath(ctx, func(c *unixctl.Conn, datapath string) error {
		if len(pairs) > fewPairs {
			return flushListed(ctx, c, datapath, pairs)
		}
		for _, d := range pairs {
			if _, err := c.Call(ctx, "dpctl/flush-conntrack", datapath, tupleEnd("dst", d.Protocol, d.From),
				tupleEnd("src", d.Protocol, d.To)); err != nil {
				return fmt.Errorf("flush connections of %s from %s to %s: %w", d.Protocol, d.From, d.To, err)
			}
		}
		return nil
	})
}

func flushListed(ctx context.Context, c *unixctl.Conn, datapath string, pairs []plan.Datagram) error {
	out, err := c.Call(ctx, "dpctl/dump-conntrack", datapath)
	if err != nil {
		return fmt.Errorf("list connections of %s: %w", datapath, err)
	}
	is := make(map[plan.Datagram]bool, len(pairs))
	for _, d := range pairs {
		is[plan.Datagram{Protocol: d.Protocol, From: d.From, To: d.To}] = true
	}
	var calls [][]string
	var unread []error
	for line := range strings.Lines(out) {
		e, err := parseEntry(line)
		if err != nil {
			unread = append(unread, err)
		} else if d, ok := e.balancedPair(); ok && is[d] {
			calls = append(calls, []string{datapath, fmt.Sprintf("zone=%d", e.Zone), e.flushTuple()})
		}
	}
	return errors.Join(append(unread, c.CallEach(ctx, "dpctl/flush-conntrack", calls, unlessEnded))...)
}

// balancedPair returns the destination of a connection, and to which endpoint it was translated. is: nothing else ends
// connections of its protocol.
func (e Entry) balancedPair() (d plan.Datagram, is bool) {
	protocol, is := map[uint8]string{protoUDP: "udp", protoSCTP: "sctp"}[e.Proto]
	return plan.Datagram{Protocol: protocol, From: netip.AddrPortFrom(e.Orig.Dst, e.Orig.DstPort),
		To: netip.AddrPortFrom(e.Reply.Src, e.Reply.SrcPort)}, is
}

// tupleEnd is one end of a tuple, for all connections that have it (OVS 3.1 and later).
func tupleEnd(side, protocol string, at netip.AddrPort) string {
	family := "nw"
	if at.Addr().Is6() {
		family = "ipv6"
	}
	return fmt.Sprintf("ct_%s_%s=%s,ct_nw_proto=%d,ct_tp_%s=%d", family, side, at.Addr(), protocols[protocol], side,
		at.Port())
}
