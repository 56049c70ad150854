package controller

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

const (
	// coalesce is how long after a decision the next one waits for more to change; the first change of a burst does not
	// wait.
	coalesce = 20 * time.Millisecond
	// lazily is how long a change may wait that only makes a message more exact: that of a pod.
	lazily = time.Second
	// pulse is how often the loop shows that it lives.
	pulse = time.Second
)

// Controller is the loop. All fields but beat belong to it.
type Controller struct {
	log     *slog.Logger
	metrics *Metrics
	writer  Writer
	world   *world.World
	source  Source

	now     func() time.Time            // of the clock
	later   func(time.Duration, func()) // has something done beside the loop, after a time
	terms   chan context.Context
	results chan result
	events  chan posting
	untold  chan posting // those that could not be posted
	found   chan probe.Change
	agents  chan probe.AgentChange
	leaders chan string

	prober   Prober         // nil: nodes are not probed
	self     string         // the node that this runs on; for the prober
	leader   string         // the one of the controller that leads
	followed []probe.Target // the last targets of the prober
	beside   probe.Witnesses
	named    []netip.Addr // further witnesses, that people named
	strayed  bool         // that may be out of date
	reach    reach
	outbox   *outbox       // nil while another leads
	changed  []world.Entry // in the world, by the change or decision under way
	features feature.Kinds
	deciders []decide.Decider         // of one term, in the order in which they decide
	kinds    map[world.Kind]kube.Kind // of the objects that are written
	news     map[target]news          // Events of what is not written yet
	synced   bool
	wentBack int64     // as the source last counted
	told     []posting // to be posted when the writes are done
	late     []posting // to be posted once more, some pulses later
	decided  time.Time // when, last
	looked   time.Time // when the clock on the wall was last looked at
	due      time.Time // when to decide next; zero: not
	beat     atomic.Int64
}

// Source is where changes of the world come from.
type Source interface {
	Changes() <-chan kube.Change
	Synced() bool
	// WentBack counts how often the history of a resource was found to have gone back, in what was applied to the
	// world.
	WentBack() int64
}

// New makes a controller that decides nothing before it is told to Lead.
func New(c *world.Config, features feature.Kinds, source Source, writer Writer, metrics *Metrics, log *slog.Logger,
) *Controller {
	out := &Controller{
		log: log, metrics: metrics, writer: writer, world: features.NewWorld("", c), features: features, source: source,
		now: time.Now, later: runLater,
		terms: make(chan context.Context), results: make(chan result), events: make(chan posting, eventBacklog),
		untold: make(chan posting),
		found:  make(chan probe.Change), agents: make(chan probe.AgentChange), leaders: make(chan string),
		reach:    newReach(),
		deciders: features.NewDeciders(), kinds: writtenKinds(features), news: map[target]news{},
	}
	out.world.FollowChanges(out.noteChanged)
	return out
}

// Lead makes this the controller that decides, until ctx is done. It returns when the loop knows.
func (c *Controller) Lead(ctx context.Context) {
	select {
	case c.terms <- ctx:
	case <-ctx.Done():
	}
}

// Alive says whether the loop went round lately.
func (c *Controller) Alive() bool { return time.Since(time.Unix(0, c.beat.Load())) < 10*pulse }

// Run is the loop, until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	defer c.startEvents(ctx)()
	pulses := time.NewTicker(pulse)
	defer pulses.Stop()
	timer := time.NewTimer(0)
	for {
		c.beat.Store(time.Now().UnixNano())
		select {
		case <-ctx.Done():
			return
		case term := <-c.terms:
			c.beginTerm(term)
		case <-c.termOver():
			c.endTerm()
		case change := <-c.source.Changes():
			c.applyChange(change)
			c.drainChanges()
		case change := <-c.found:
			c.takeReachability(change)
		case change := <-c.agents:
			c.agentFound(change)
		case c.leader = <-c.leaders:
			c.strayed = true
		case r := <-c.results:
			c.takeResult(r)
		case p := <-c.untold:
			c.putOff(p)
		case <-timer.C:
		case <-pulses.C:
			c.handLate()
			c.handEvents()
		}
		c.followTargets()
		if wait := c.decideWhenDue(c.now()); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// beginTerm starts a term: what the objects say now is where it starts from.
func (c *Controller) beginTerm(term context.Context) {
	c.endTerm()
	c.log.Info("leading")
	c.metrics.leader.Set(1)
	c.metrics.resetTally(c.world)
	c.metrics.showUnreachable(c.world)
	c.outbox = newOutbox(term, c.results)
	c.outbox.later = c.later
	c.decideBy(c.now())
}

// termOver is closed when the term is.
func (c *Controller) termOver() <-chan struct{} {
	if c.outbox == nil {
		return nil
	}
	return c.outbox.ctx.Done()
}

// endTerm forgets what was decided and may not have been written: the objects tell, and another leads.
func (c *Controller) endTerm() {
	if c.outbox == nil {
		return
	}
	c.log.Info("no longer leading")
	c.metrics.resetGauges()
	c.outbox = nil
	c.deciders, c.news = c.features.NewDeciders(), map[target]news{}
	c.world.ForgetReaders()
	c.world.Undecide()
}

// drainChanges applies what has come meanwhile, so that a burst is decided in one go.
func (c *Controller) drainChanges() {
	for {
		select {
		case change := <-c.source.Changes():
			c.applyChange(change)
		default:
			return
		}
	}
}

// applyChange brings a change into the world, and says when it calls for a decision.
func (c *Controller) applyChange(change kube.Change) {
	now := c.now()
	c.changed = c.changed[:0]
	change(c.world)
	c.forgetWritten()
	for _, e := range c.changed {
		c.decideBy(now.Add(decisionDelay(e.Kind)))
		if e.Kind == world.KindHolders {
			c.metrics.noteArrivals(c.world, e.Key, now)
		}
	}
	c.passTime(now) // also while another leads: a new leader knows when things ended
	c.takeShown(now)
	if !c.synced && c.source.Synced() {
		c.synced = true
		c.log.Info("synced", "nodes", len(c.world.Nodes()), "egressIPs", len(c.world.EgressIPs()))
		c.decideBy(now)
	}
}

// decisionDelay is how long a decision may wait that a change calls for.
func decisionDelay(k world.Kind) time.Duration {
	switch k {
	case world.KindPod, world.KindPods, world.KindNamespace, world.KindEgressServicesIn, world.KindEgressServicesAt:
		return lazily
	}
	return 0
}

// noteChanged tells deciders and the prober what changes in the world.
func (c *Controller) noteChanged(e world.Entry) {
	c.changed = append(c.changed, e)
	for _, d := range c.deciders {
		d.NoteChanged(e)
	}
	c.strayed = c.strayed || e.Kind == world.KindEgressService
	if e.Kind == world.KindNode {
		c.strayed = true
		c.metrics.tally.nodes[e.Key] = struct{}{}
	}
}

// takeShown takes in what the API has shown of objects of which something was decided. If that is all that was decided,
// there is nothing new to decide.
func (c *Controller) takeShown(now time.Time) {
	for e := range c.world.ShownAnew() {
		for _, d := range c.deciders {
			c.decideBy(d.Seen(c.decideView(now), e))
		}
		c.outbox.noteShown(target{e.Kind, e.Key})
		c.writeIfNeeded(target{e.Kind, e.Key})
	}
}

// forgetWritten no longer waits for the world to see writes that are not in the API server's history any more.
func (c *Controller) forgetWritten() {
	n := c.source.WentBack()
	if n != c.wentBack && c.outbox != nil {
		c.outbox.forgetWritten()
	}
	c.wentBack = n
}

// decideBy asks for a decision at a time, or soon after the last one; not at zero.
func (c *Controller) decideBy(at time.Time) {
	if at.IsZero() {
		return
	}
	if soonest := c.decided.Add(coalesce); at.Before(soonest) {
		at = soonest
	}
	if c.due.IsZero() || at.Before(c.due) {
		c.due = at
	}
}

// decideWhenDue decides, if it is time, and says how long to wait for the next decision; 0: until something changes.
func (c *Controller) decideWhenDue(now time.Time) time.Duration {
	if c.outbox == nil || !c.synced || c.due.IsZero() {
		return 0
	}
	// Deciders ask for a time of the wall clock. After that was set back, it may be far off.
	back := now.Round(0).Before(c.looked)
	if c.looked = now.Round(0); now.Before(c.due) && !back {
		return c.due.Sub(now)
	}
	c.due = time.Time{}
	c.decideAll(now)
	c.decided = c.now()
	c.metrics.decisions.Observe(c.decided.Sub(now).Seconds())
	return c.untilAgain()
}

// untilAgain is how long to wait for the decision that deciders have asked for while they decided; 0: for none.
func (c *Controller) untilAgain() time.Duration {
	again := c.due
	c.due = time.Time{}
	if c.decideBy(again); c.due.IsZero() {
		return 0
	}
	return c.due.Sub(c.decided)
}
