package probe

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"
)

// DefaultGrace is how long an agent may be away: its pod is replaced in this time.
const DefaultGrace = 30 * time.Second

// Discard is the port that is tried where agents have no health service: nobody listens there, and a host that lives
// says so.
const Discard = 9

// Target is a node to probe, with its management addresses.
type Target struct {
	Node  string
	Addrs []netip.Addr
	// Direct are its addresses on the primary network, where it is asked while it is silent at the others.
	Direct []netip.Addr
}

func (t Target) sameTarget(other Target) bool {
	return t.Node == other.Node && slices.Equal(t.Addrs, other.Addrs) && slices.Equal(t.Direct, other.Direct)
}

// Options of a Prober.
type Options struct {
	Self         string        // the node that this runs on
	Total, Grace time.Duration // see Judge
	Port         int           // of the agents' health service; 0: none, and TCP port 9 is tried
	TLS          Files
	Log          *slog.Logger
	// RTT is told the time between a question and its answer.
	RTT func(time.Duration)
	// Tell is told what has become of a node. It may wait, but not for the Prober, and not when the context is done.
	Tell func(context.Context, Change)
}

// Prober probes nodes, each beside all others.
type Prober struct {
	o        Options
	door     int // the port that is tried where agents have no health service
	material *material
	start    time.Time
	judge    Judge
	peers    map[string]*peer // of Run alone
	knocker  knocker

	witnesses  atomic.Pointer[Witnesses]
	witnessed  atomic.Int64 // when one answered last
	witnessDue time.Duration
	signs      map[string]Signs // of look alone, used again and again
	ends       chan end
	named      []Target // of Follow alone: the last
	targets    chan following
	view       atomic.Pointer[view]
	changed    chan struct{}
}

// following is the set of nodes to probe from now on, and those of them whose probing starts again, because their
// addresses changed at any time since the previous call.
type following struct {
	targets []Target
	anew    map[string]bool
}

// view is what others may ask for.
type view struct {
	silent map[string]bool
	cutOff bool
}

// New makes a Prober that probes nothing yet.
func New(o Options) *Prober {
	p := &Prober{
		o: o, door: Discard, material: newMaterial(o.TLS, o.Log), start: time.Now(), peers: map[string]*peer{},
		ends: make(chan end), targets: make(chan following, 1), changed: make(chan struct{}, 1),
		signs: map[string]Signs{}, judge: Judge{Total: o.Total, Grace: o.Grace, Agents: o.Port != 0, Self: o.Self},
	}
	p.knocker = knocker{patience: o.Total}
	p.view.Store(&view{})
	p.witnesses.Store(&Witnesses{})
	return p
}

// Follow says which nodes to probe from now on, and who are witnesses beside them. A node that was not among them the
// time before, or had other addresses, counts as new, and Tell receives its state in any case. It never waits; one
// goroutine calls it.
func (p *Prober) Follow(targets []Target, beside Witnesses) {
	p.witnesses.Store(&beside)
	next := following{targets, map[string]bool{}}
	for _, t := range targets {
		if !slices.ContainsFunc(p.named, t.sameTarget) {
			next.anew[t.Node] = true
		}
	}
	p.named = targets
	select {
	case missed := <-p.targets: // not taken yet, and out of date
		maps.Copy(next.anew, missed.anew)
	default:
	}
	p.targets <- next
}

// Silent says whether a node is dead.
func (p *Prober) Silent(node string) bool { return p.view.Load().silent[node] }

// CutOff says whether it is this host that nobody answers.
func (p *Prober) CutOff() bool { return p.view.Load().cutOff }

// Changed tells one listener when an answer of Silent or CutOff has become another.
func (p *Prober) Changed() <-chan struct{} { return p.changed }

// Run probes until ctx is done. One loop asks all nodes, a part of them at each tick; it waits for none. With a Total
// of 0 it probes nothing. It fails at once when the TLS files cannot be loaded: a prober without them would take every
// agent for away.
func (p *Prober) Run(ctx context.Context) error {
	if p.o.Total == 0 {
		<-ctx.Done()
		return nil
	}
	if _, err := p.material.clientCredentials(); p.o.Port != 0 && err != nil {
		return err
	}
	defer p.knocker.closeAll()
	tick := time.NewTicker(p.tickInterval())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case t := <-p.targets:
			p.followNodes(ctx, t)
		case e := <-p.ends:
			e.s.x.sessionEnded(e)
		case <-tick.C:
			p.askPeers()
			p.judgeSigns(ctx)
		}
	}
}

func (p *Prober) askPeers() {
	p.knocker.collectAnswers(time.Now())
	now := p.sinceStart()
	for _, x := range p.peers {
		x.askDue(now)
	}
	p.askWitnesses(now)
}

// noteTimedKnock receives the answer to a knock that was timed.
func (p *Prober) noteTimedKnock(x *peer, after time.Duration) {
	x.hostAnswered()
	p.o.RTT(after)
}

func (p *Prober) sinceStart() time.Duration { return time.Since(p.start) }

func (p *Prober) tickInterval() time.Duration { return p.o.Total / 25 }

// knockInterval is the distance of knocks.
func (p *Prober) knockInterval() time.Duration { return p.o.Total / 3 }

// beatInterval is the distance of the beats that agents are asked for. TCP sees to it that they arrive, so that they
// may be fewer; they cost more.
func (p *Prober) beatInterval() time.Duration { return p.o.Total * 2 / 5 }

// followNodes starts and ends the probes of nodes.
func (p *Prober) followNodes(ctx context.Context, f following) {
	wanted := map[string]bool{}
	news := 0
	for _, t := range f.targets {
		wanted[t.Node] = true
		old := p.peers[t.Node]
		if old != nil && !f.anew[t.Node] {
			continue
		}
		if old != nil {
			old.stop()
		}
		x := newPeer(ctx, p, t)
		// new nodes take turns within the interval
		x.due = p.sinceStart() + p.tickInterval()*time.Duration(news%int(p.knockInterval()/p.tickInterval()))
		x.notBefore = x.due
		news++
		p.peers[t.Node] = x
	}
	maps.DeleteFunc(p.peers, func(name string, old *peer) bool {
		if !wanted[name] {
			old.stop()
		}
		return !wanted[name]
	})
}

func (p *Prober) judgeSigns(ctx context.Context) {
	clear(p.signs)
	for name, x := range p.peers {
		p.signs[name] = x.currentSigns()
	}
	changes := p.judge.Look(p.sinceStart(), p.signs, time.Duration(p.witnessed.Load()))
	if len(changes) > 0 || p.judge.CutOff() != p.CutOff() {
		p.view.Store(&view{p.judge.Silent(), p.judge.CutOff()})
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	for _, c := range changes {
		p.o.Tell(ctx, c)
	}
}
