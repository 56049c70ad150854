package controller

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
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
	tasks   chan func()                 // other goroutines queue them for the loop
	results chan result

	events   *poster
	reach    *reach
	outbox   *outbox       // nil while another leads
	changed  []world.Entry // in the world, by the change or decision under way
	features feature.Kinds
	deciders []decide.Decider         // of one term, in the order in which they decide
	kinds    map[world.Kind]kube.Kind // of the objects that are written
	news     map[target]news          // Events of what is not written yet
	synced   bool
	wentBack int64     // as the source last counted
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
	// LookAtWatches ends watches that stand still, and returns when to look again.
	LookAtWatches(now time.Time) time.Time
	// ReadNow has the world take in all objects of a kind as they are now.
	ReadNow(ctx context.Context, k kube.Kind, namespace string) error
}

// New makes a controller that decides nothing before it is told to Lead.
func New(c *world.Config, features feature.Kinds, source Source, writer Writer, metrics *Metrics, log *slog.Logger,
) *Controller {
	out := &Controller{
		log: log, metrics: metrics, writer: writer, world: features.NewWorld("", c), features: features, source: source,
		now: time.Now, later: runLater,
		tasks: make(chan func()), results: make(chan result),
		events: newPoster(writer, metrics.eventErrors, log), reach: newReach(),
		deciders: features.NewDeciders(), kinds: writtenKinds(features), news: map[target]news{},
	}
	out.world.FollowChanges(out.noteChanged)
	return out
}

// Lead makes this the controller that decides, until ctx is done. It returns when the loop knows.
func (c *Controller) Lead(ctx context.Context) {
	if c.readHolders(ctx) {
		c.runInLoop(ctx, func() { c.beginTerm(ctx) })
	}
}

// Led takes in on which node the controller is that leads.
func (c *Controller) Led(ctx context.Context, node string) {
	c.runInLoop(ctx, func() { c.reach.setLeader(node) })
}

// Found takes in what has become of a node that is probed.
func (c *Controller) Found(ctx context.Context, change probe.Change) {
	c.runInLoop(ctx, func() { c.takeReachability(change) })
}

// AgentFound takes in that an agent was found dead, or alive again.
func (c *Controller) AgentFound(ctx context.Context, change probe.AgentChange) {
	c.runInLoop(ctx, func() { c.takeAgent(change) })
}

// runInLoop returns when the loop begins the task, or ctx is done.
func (c *Controller) runInLoop(ctx context.Context, task func()) {
	select {
	case c.tasks <- task:
	case <-ctx.Done():
	}
}

// Alive says whether the loop went round lately.
func (c *Controller) Alive() bool { return time.Since(time.Unix(0, c.beat.Load())) < 10*pulse }

// Run is the loop, until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	defer c.events.startEvents(ctx)()
	pulses := time.NewTicker(pulse)
	defer pulses.Stop()
	timer := time.NewTimer(0)
	for {
		c.beat.Store(time.Now().UnixNano())
		select {
		case <-ctx.Done():
			return
		case task := <-c.tasks:
			task()
		case <-c.termOver():
			c.endTerm()
		case change := <-c.source.Changes():
			c.applyChange(change)
			c.drainChanges()
		case r := <-c.results:
			c.takeResult(r)
		case p := <-c.events.failed:
			c.events.putOff(p)
		case <-timer.C:
		case <-pulses.C:
			c.source.LookAtWatches(c.now())
			c.events.handLate()
			c.events.handEvents()
		}
		c.followTargets()
		if wait := c.decideWhenDue(c.now()); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// beginTerm starts a term: what the objects say now is where it starts from.
func (c *Controller) beginTerm(term context.Context) {
	c.drainChanges()
	c.endTerm()
	c.log.Info("leading")
	c.metrics.leader.Set(1)
	c.metrics.tally.BeginCount(c.world)
	c.metrics.probes.showAllUnreachable(c.world)
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
	c.reach.noteChanged(e)
	if c.outbox != nil {
		c.metrics.tally.NoteChanged(e)
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

// Probe makes the prober of this controller, which runs on a node. It is called before Run. All controllers probe, so
// that one that begins to lead knows at once. Named are hosts outside that are witnesses, too.
func (c *Controller) Probe(self string, port int, tls probe.Files, named []netip.Addr) *probe.Prober {
	p := probe.New(probe.Options{
		Self: self, Total: c.world.Config.ReachabilityTimeout, Grace: probe.DefaultGrace, Port: port, TLS: tls,
		Log: c.log,
		RTT: func(d time.Duration) { c.metrics.probes.rtt.Observe(d.Seconds()) }, Tell: c.Found,
	})
	c.reach.prober, c.reach.self, c.reach.named = p, self, named
	return p
}

// followTargets takes nodes that were not probed before for not answering: a decision does not wait for the first
// change that the prober tells of. Without a timeout none comes.
func (c *Controller) followTargets() {
	for _, node := range c.reach.followTargets(c.world) {
		if c.world.Config.ReachabilityTimeout != 0 {
			c.applyChange(func(w *world.World) { w.SetNotAnswering(node, true) })
		}
	}
}

// takeReachability is Found, in the loop.
func (c *Controller) takeReachability(change probe.Change) {
	c.log.Info("reachability of a node", "node", change.Node, "unreachable", change.Why,
		"not answering", change.NotAnswering, "silent", change.Silent.Round(time.Millisecond))
	c.reach.noteProbed(change.Node, change.Why)
	c.applyChange(func(w *world.World) {
		c.setUnreachable(w, change.Node)
		w.SetNotAnswering(change.Node, change.NotAnswering)
	})
}

// takeAgent is AgentFound, in the loop.
func (c *Controller) takeAgent(change probe.AgentChange) {
	c.log.Info("life of an agent, by its Lease", "node", change.Node, "dead", change.Dead,
		"silent", change.Silent.Round(time.Second))
	c.reach.noteAgent(change.Node, change.Dead)
	c.applyChange(func(w *world.World) { c.setUnreachable(w, change.Node) })
}

// setUnreachable brings into the world whether a node counts as reachable. The leader tells people of it.
func (c *Controller) setUnreachable(w *world.World, node string) {
	why := c.reach.whyUnreachable(node)
	if w.Unreachable(node) == why {
		return
	}
	if w.SetUnreachable(node, why); c.outbox != nil {
		c.metrics.probes.showUnreachable(node, why)
		if n := w.Node(node); n != nil && why == world.AgentAway {
			c.postEvent(target{world.KindNode, node}, n.UID,
				decide.Event{Warning: true, Reason: handover.CauseAgentAway, Action: "Probe", Message: agentAway})
		}
	}
}

// agentAway is the Event about a node whose agent is dead.
const agentAway = "egret-node on this node does not show that it lives: what it has set up goes on as it is, new " +
	"pods get no network, and egress IPs move to nodes whose agents live. See whether egret-node runs here, and what " +
	"its log says"

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
