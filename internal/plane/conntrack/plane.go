package conntrack

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

const (
	// rounds bounds how often a zone is read again after a flush: a packet in flight may have made an entry by the old
	// rule.
	rounds = 3
	// portion is how many connections are ended before anything else gets its turn, if turn is over by then: thousands
	// take seconds.
	portion = 128
	turn    = 100 * time.Millisecond
	// restored is how long after somebody has deleted rules they are back for certain.
	restored = 6 * time.Second
)

// Tables are what a Plane follows.
const Tables = plan.InSources | plan.InDestinations | plan.InSourceExempt | plan.InMasquerades

// Zones knows conntrack zone numbers by name ("GR_n1_snat"); ovs.DB does.
type Zones interface {
	CTZone(ctx context.Context, name string) (int, bool)
}

// Plane flushes connections with a wrong source.
type Plane struct {
	ctx    context.Context // of what is read outside of Shrink
	target Target
	zones  Zones
	own    func() map[string]Own
	log    *slog.Logger

	turn time.Duration

	again   chan struct{}
	recheck recheck[plan.Source]

	mu   sync.Mutex
	done map[string]rest    // by router whose connections follow the Sources that were last seen, but for due
	due  map[string]pods    // by router: pods whose connections must be looked at
	read map[string][]Entry // by router: connections that were read, and neither judged right nor ended yet
	// routers are those of the plan that was last seen, own's among them.
	routers map[string]Own
	// ended counts the connections that were ended.
	ended uint64
	// disturbed is until when connections that are not translated are ended, too.
	disturbed time.Time

	sources      plan.Follower[plan.Source]
	destinations plan.Follower[string]
}

type pods map[netip.Addr]bool

// rest holds the rules for a router's connections other than Sources.
type rest struct {
	own    Own
	exempt map[netip.Addr]plan.None
}

func (r rest) equalRest(o rest) bool { return r.own.equalOwn(o.own) && maps.Equal(r.exempt, o.exempt) }

var _ plane.Plane = (*Plane)(nil)

// New is a plane on target. own gives, by router, what connections look like without an egress IP; its routers are
// looked at even when none of their pods has one, so that a pod that lost its egress IP while nobody looked loses its
// connections.
func New(
	ctx context.Context, target Target, zones Zones, own func() map[string]Own, log *slog.Logger,
) *Plane {
	p := &Plane{
		ctx: ctx, target: target, zones: zones, own: own, log: log, turn: turn, done: map[string]rest{},
		due: map[string]pods{}, read: map[string][]Entry{}, again: make(chan struct{}, 1),
		sources:      plan.Follow[plan.Source](plan.InSources),
		destinations: plan.Follow[string](plan.InDestinations),
	}
	p.recheck.due = p.readAside
	return p
}

// Again is signalled when Shrink must be called though nothing has changed: it looks at connections then.
func (p *Plane) Again() <-chan struct{} { return p.again }

func (p *Plane) Name() string { return "conntrack" }

// Grow does nothing: a connection is ended only when the rules for its successor are in place.
func (p *Plane) Grow(context.Context, *plan.State) error { return nil }

// Shrink flushes wrong connections on the routers for which something changed: of the pods whose Sources did, or of all
// pods. A router that has no zone yet has no connections; it is looked at when it has one. Where there are many, Shrink
// returns plane.ErrUnfinished for others to have their turn.
func (p *Plane) Shrink(ctx context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := withNetworks(p.own(), want)
	p.routers = own
	keepRouters(p.done, own)
	keepRouters(p.due, own)
	keepRouters(p.read, own)
	changed, ended := p.noteChanged(want, own), p.ended
	routersChanged, err := p.lookAtRouters(ctx, want, own)
	p.recheck.beginFor(recheckTimes(p.ended > ended), append(changed, routersChanged...)...)
	return err
}

// recheckTimes returns when connections are looked at again.
func recheckTimes(ended bool) []time.Duration {
	if ended {
		return slices.Concat(lookSoon(), lookAgain())
	}
	return lookAgain()
}

// lookAtRouters ends wrong connections on the routers that are not done, and returns the routers that were done before,
// and have other rules now.
func (p *Plane) lookAtRouters(ctx context.Context, want *plan.State, own map[string]Own) (changed []plan.Source,
	err error) {
	exempt, bare := exemptAddresses(want), time.Now().Before(p.disturbed)
	for _, router := range slices.Sorted(maps.Keys(own)) {
		now := rest{own[router], exempt}
		done, is := p.done[router]
		known := is && done.equalRest(now)
		if known && !bare && len(p.due[router]) == 0 && len(p.read[router]) == 0 {
			continue
		}
		zone, ok := p.zones.CTZone(ctx, plan.SNATZone(router))
		others, has := p.otherZonesOf(ctx, router, now.own)
		if !ok || !has {
			continue
		}
		if is && !known {
			changed = append(changed, plan.Source{Router: router})
		}
		if err := p.enforceZone(ctx, zone, policy{router, want, now, others, bare}, known && !bare); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// noteChanged notes the pods whose Sources have changed, and returns these Sources. Pods that are not due need not be
// noted from then on.
func (p *Plane) noteChanged(want *plan.State, own map[string]Own) (changed []plan.Source) {
	sources, to := p.sources.Take(want), p.destinations.Take(want)
	p.sources.Done(want)
	p.destinations.Done(want)
	if !sources.Known || !to.Known {
		clear(p.done)
		return routerSources(own)
	}
	changed = slices.Clone(sources.Keys)
	if len(to.Keys) > 0 {
		changed = append(changed, destinationSources(want, to.Keys)...)
	}
	changed = slices.DeleteFunc(changed, func(s plan.Source) bool {
		_, is := own[s.Router]
		return !is
	})
	for _, s := range changed {
		p.noteDue(s.Router, s.Pod)
	}
	return changed
}

func (p *Plane) noteDue(router string, pod netip.Addr) {
	if p.due[router] == nil {
		p.due[router] = pods{}
	}
	p.due[router][pod] = true
}

// routerSources returns one Source for each router, which stands for all Sources of it.
func routerSources(own map[string]Own) (out []plan.Source) {
	for router := range own {
		out = append(out, plan.Source{Router: router})
	}
	return out
}

// destinationSources returns the Sources that name destinations.
func destinationSources(want *plan.State, to []string) []plan.Source {
	named := map[string]bool{}
	for _, name := range to {
		named[name] = true
	}
	var out []plan.Source
	for s, sources := range want.Sources.Rows() {
		if slices.ContainsFunc(sources, func(t plan.SourceTo) bool { return named[t.To] }) {
			out = append(out, s)
		}
	}
	return out
}

func exemptAddresses(want *plan.State) map[netip.Addr]plan.None {
	exempt := map[netip.Addr]plan.None{}
	for a := range want.SourceExempt.Rows() {
		exempt[a] = plan.None{}
	}
	return exempt
}

// Forget makes the next Shrink look at all connections.
func (p *Plane) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.done)
}

// Disturbed says that somebody has deleted rules that translate, which are back by now, or soon: `nft flush ruleset` as
// Debian's nftables.service has it. Connections that pods began meanwhile have no translation, and get none as long as
// the pods go on sending: they are ended when connections are looked at in the next few seconds. A connection that is
// rightly untranslated loses nothing by that, for its next packet makes it again (of TCP, with nf_conntrack_tcp_loose
// as the kernel has it).
func (p *Plane) Disturbed() {
	p.mu.Lock()
	p.disturbed = time.Now().Add(restored)
	clear(p.done)
	p.mu.Unlock()
	p.recheck.beginFor(lookAgain(), routerSources(p.own())...)
}

// enforceZone flushes until a look finds nothing wrong, or its turn is over. known: all connections but those of the
// pods that are due are right, unless connections that were read since say otherwise.
func (p *Plane) enforceZone(ctx context.Context, zone int, right policy, known bool) error {
	wrong := right.wrongOf(p.read[right.router])
	delete(p.read, right.router)
	var due pods
	if known {
		for _, e := range wrong {
			p.noteDue(right.router, e.Orig.Src)
		}
		if due = p.due[right.router]; len(due) == 0 {
			return nil
		}
	} else {
		delete(p.done, right.router)
	}
	end := time.Now().Add(p.turn)
	for range rounds {
		looked, unread := len(wrong) == 0, error(nil)
		if looked {
			wrong, unread = p.dumpConnections(ctx, zone, right.otherZones, right.own, due)
			wrong = right.wrongOf(wrong)
		}
		if err := p.flushEntries(ctx, right, wrong, end); err != nil {
			return err
		}
		if unread != nil {
			return fmt.Errorf("look at connections of %s: %w", right.router, unread)
		}
		if len(wrong) > 0 {
			p.log.Info("wrong connections ended", "router", right.router, "zone", zone, "count", len(wrong))
		}
		if looked && !slices.ContainsFunc(wrong, right.isStale) { // others come back as long as rules are away
			p.done[right.router] = right.rest
			delete(p.due, right.router)
			return nil
		}
		wrong = nil
	}
	return fmt.Errorf("connections of %s keep coming back with a wrong source: are its NAT rows in place?",
		right.router)
}

// podPatterns returns patterns of the connections of these pods; of nil or of many, none, which stands for all
// connections.
func (p pods) podPatterns() (out []Entry) {
	if len(p) > fewPatterns {
		return nil
	}
	for pod := range p {
		out = append(out, Entry{Orig: Tuple{Src: pod}})
	}
	return out
}

// readAside reads connections of Sources outside of the agent's loop, and has Shrink called, which judges them. Nearly
// always Shrink finds nothing wrong, and then nobody has waited for the reading.
func (p *Plane) readAside(sources []plan.Source) {
	of := map[string]pods{}
	for _, s := range sources {
		if of[s.Router] == nil {
			of[s.Router] = pods{}
		}
		of[s.Router][s.Pod] = true
	}
	for router, which := range of {
		p.mu.Lock()
		own := p.routers[router]
		p.mu.Unlock()
		zone, ok := p.zones.CTZone(p.ctx, plan.SNATZone(router))
		others, has := p.otherZonesOf(p.ctx, router, own)
		if !ok || !has {
			continue
		}
		all := which[netip.Addr{}]
		if all {
			which = nil
		}
		entries, err := p.dumpConnections(p.ctx, zone, others, own, which)
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return !all && !which[e.Orig.Src] })
		p.mu.Lock()
		if p.read[router] = append(p.read[router], entries...); err != nil {
			delete(p.done, router) // Shrink reads again, and says what is wrong
		}
		p.mu.Unlock()
	}
	plane.SignalOnce(p.again)
}

// flushEntries ends connections by portions.
func (p *Plane) flushEntries(ctx context.Context, right policy, stale []Entry, end time.Time) error {
	for len(stale) > 0 {
		n := min(portion, len(stale))
		if err := p.target.Flush(ctx, append(right.inOtherZones(stale[:n]), stale[:n]...)...); err != nil {
			return fmt.Errorf("end connections of %s: %w", right.router, err)
		}
		p.ended += uint64(n)
		if stale = stale[n:]; len(stale) > 0 && !time.Now().Before(end) {
			p.read[right.router] = stale
			return plane.ErrUnfinished
		}
	}
	return nil
}
