package controller

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/feature/zone"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

const (
	// coalesce is how long after a decision the next one waits for more to change; the first change of a burst does not wait.
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

	terms   chan context.Context
	results chan result
	events  chan kube.Event
	found   chan probe.Change
	leaders chan string

	prober    Prober         // nil: nodes are not probed
	self      string         // the node that this runs on; for the prober
	leader    string         // the one of the controller that leads
	followed  []probe.Target // what the prober was told last
	strayed   bool           // that may be out of date
	outbox    *outbox        // nil while another leads
	egressIPs *egressIPs
	nodes     *nodes
	services  *services
	synced    bool
	wentBack  int64        // as the source last counted
	told      []kube.Event // to be posted when the writes are done
	decided   time.Time    // when, last
	due       time.Time    // when to decide next; zero: not
	beat      atomic.Int64
}

// Source is where changes of the world come from.
type Source interface {
	Changes() <-chan kube.Change
	Synced() bool
	// WentBack counts how often the history of a resource was found to have gone back, in what was applied to the world.
	WentBack() int64
}

// New makes a controller that decides nothing before it is told to Lead.
func New(c *world.Config, source Source, writer Writer, metrics *Metrics, log *slog.Logger) *Controller {
	return &Controller{
		log: log, metrics: metrics, writer: writer, world: world.New("", c), source: source,
		terms: make(chan context.Context), results: make(chan result), events: make(chan kube.Event, eventBacklog),
		found: make(chan probe.Change), leaders: make(chan string),
		egressIPs: newEgressIPs(), nodes: newNodes(), services: newServices(),
	}
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
	c.startEvents(ctx)
	pulses := time.NewTicker(pulse)
	defer pulses.Stop()
	timer := time.NewTimer(0)
	for {
		c.beat.Store(time.Now().UnixNano())
		select {
		case <-ctx.Done():
			return
		case term := <-c.terms:
			c.begin(term)
		case <-c.over():
			c.end()
		case change := <-c.source.Changes():
			c.apply(change)
			c.drain()
			c.catchUp()
		case change := <-c.found:
			c.reached(change)
		case c.leader = <-c.leaders:
			c.strayed = true
		case r := <-c.results:
			c.ended(r)
		case <-timer.C:
		case <-pulses.C:
			if c.outbox != nil && c.egressIPs.unseen(c.world) {
				c.decideBy(time.Now())
			}
			c.handEvents()
		}
		c.follow()
		if wait := c.decideWhenDue(time.Now()); wait > 0 {
			timer.Reset(wait)
		}
		if c.outbox == nil || c.outbox.writing == 0 {
			c.handEvents()
		}
	}
}

// begin starts a term: what the objects say now is where it starts from.
func (c *Controller) begin(term context.Context) {
	c.end()
	c.log.Info("leading")
	c.metrics.leader.Set(1)
	c.outbox = newOutbox(term, c.results)
	c.decideBy(time.Now())
}

// over is closed when the term is.
func (c *Controller) over() <-chan struct{} {
	if c.outbox == nil {
		return nil
	}
	return c.outbox.ctx.Done()
}

// end forgets what was decided and may not have been written: the objects tell, and another leads.
func (c *Controller) end() {
	if c.outbox == nil {
		return
	}
	c.log.Info("no longer leading")
	c.metrics.leader.Set(0)
	c.metrics.forget(nil)
	c.outbox = nil
	c.nodes.see(c.world) // what came and touched nothing would be lost, and every later write be of an old version
	c.egressIPs.see(c.world)
	for _, e := range c.egressIPs.says {
		c.world.SetEgressIP(e)
	}
	for _, n := range c.nodes.says {
		c.world.SetNode(n)
	}
	c.egressIPs.patience.Forget(c.world)
	c.egressIPs, c.nodes = newEgressIPs(), newNodes()
}

// drain applies what has come meanwhile, so that a burst is decided in one go.
func (c *Controller) drain() {
	for {
		select {
		case change := <-c.source.Changes():
			c.apply(change)
		default:
			return
		}
	}
}

// catchUp goes on with what waited for the world to see its last write. That may have touched nothing that anybody reads, so that the
// touches do not tell of it.
func (c *Controller) catchUp() {
	if c.outbox == nil {
		return
	}
	for t := range c.outbox.letters {
		c.refresh(t)
		c.settle(t)
	}
}

// apply brings a change into the world, and says when it calls for a decision.
func (c *Controller) apply(change kube.Change) {
	now := time.Now()
	touched := change(c.world)
	c.forgetWritten()
	c.egressIPs.touch(touched)
	for _, t := range touched {
		c.services.touch(t)
		c.strayed = c.strayed || t.Kind == world.KindNode
		switch t.Kind {
		case world.KindPod, world.KindPods, world.KindNamespace, world.KindEgressIPsIn:
			c.decideBy(now.Add(lazily))
		case world.KindEgressIP:
			c.changed(t.Key, now)
		case world.KindHolders:
			c.metrics.held(c.world, t.Key, now)
			c.decideBy(now)
		case world.KindEgressIPs: // KindEgressIP comes with it
		default:
			c.decideBy(now)
		}
	}
	if !c.synced && c.source.Synced() {
		c.synced = true
		c.log.Info("synced", "nodes", len(c.world.Nodes()), "egressIPs", len(c.world.EgressIPs()))
		c.decideBy(now)
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

// changed takes in an EgressIP that is another than before. If it only came back as it was decided, nothing is to be decided.
func (c *Controller) changed(name string, now time.Time) {
	if e := c.world.EgressIP(name); c.outbox != nil && e != nil && c.egressIPs.echo(e) {
		t := target{kube.EgressIPs, name}
		c.refresh(t)
		c.settle(t)
		return
	}
	c.decideBy(now)
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

// decideWhenDue decides, or says how long to wait for it.
func (c *Controller) decideWhenDue(now time.Time) time.Duration {
	switch {
	case c.outbox == nil || !c.synced || c.due.IsZero():
		return 0
	case now.Before(c.due):
		return c.due.Sub(now)
	}
	c.due = time.Time{}
	c.decide(now)
	c.decided = time.Now()
	c.metrics.decisions.Observe(c.decided.Sub(now).Seconds())
	return 0
}

// decide puts what the whole world calls for into the world, and writes what differs from what the API shows.
func (c *Controller) decide(now time.Time) {
	c.nodes.see(c.world)
	c.egressIPs.see(c.world)
	for name, a := range zone.Allocate(c.world) {
		for _, e := range c.nodes.decide(c.world, name, a) {
			c.post(e)
		}
		c.settle(target{kube.Nodes, name})
	}
	c.strayed = true // a node that got its subnets has management addresses
	c.egressIPs.update(c.world)
	c.egressIPs.patience.Look(c.world, c.egressIPs.written, now)
	all := egressip.Assign(c.world, c.egressIPs.served, c.egressIPs.written, now.UTC().Truncate(time.Microsecond)) // as exact as the API keeps it
	c.egressIPs.place(c.world, all)
	_, again := c.egressIPs.patience.Look(c.world, c.egressIPs.written, now) // of what was taken away just now, too
	c.decideBy(again)
	touched, again := c.egressIPs.patience.Await(c.world, all, now)
	if c.decideBy(again); len(touched) > 0 {
		c.decideBy(now)
	}
	for e := range c.world.EachEgressIP() { // the oldest is written first
		c.metrics.latencies.decided(e.Name, all[e.Name], now)
		c.egressIPs.decide(c.world, e.Name, all[e.Name], now)
		c.settle(target{kube.EgressIPs, e.Name})
		c.decideBy(all[e.Name].Again)
	}
	for _, key := range c.services.decide(c.world) {
		c.settle(target{kube.Services, key})
	}
	for t := range c.outbox.letters { // also those of objects that are gone
		c.settle(t)
	}
	c.metrics.forget(c.world)
	c.metrics.decided(c.world, all, c.egressIPs.overlaps)
}

// settle writes one object if it is not what it should be.
func (c *Controller) settle(t target) {
	send, version := c.letterTo(t)
	if send == nil {
		if c.outbox.settled(t) && t.resource == kube.EgressIPs {
			delete(c.egressIPs.events, t.name) // what they told of was taken back before it was written
		}
		return
	}
	c.outbox.write(t, version, time.Now(), send)
}

// letterTo is the write that makes an object what it should be, and the version that it was seen at; nil if it is that already.
func (c *Controller) letterTo(t target) (send func(context.Context) (string, error), version string) {
	switch t.resource {
	case kube.Nodes:
		says, should := c.nodes.says[t.name], c.nodes.should[t.name]
		if says == nil || should == nil {
			return nil, ""
		}
		if set := annotations(says, should); len(set) > 0 {
			return func(ctx context.Context) (string, error) { return c.writer.PatchNode(ctx, t.name, says.Version, set) }, says.Version
		}
	case kube.Services:
		s := c.world.Service(t.name)
		if s == nil {
			return nil, ""
		}
		if set := c.services.conditions(s); set != nil {
			return func(ctx context.Context) (string, error) { return c.writer.ApplyServiceConditions(ctx, s, set) }, s.Version
		}
	case kube.EgressIPs:
		says, should := c.egressIPs.says[t.name], c.egressIPs.should[t.name]
		if says != nil && should != nil && !sameStatus(says, should) {
			return func(ctx context.Context) (string, error) {
				return c.writer.PatchEgressIPStatus(ctx, toSend(says, should, time.Now()))
			}, says.Version
		}
	}
	return nil, ""
}

// ended takes the end of a write or of a pause.
func (c *Controller) ended(r result) {
	if c.outbox == nil || !c.outbox.ended(r) {
		return
	}
	resource := string(r.target.resource)
	switch {
	case r.woken:
	case r.err == nil:
		c.metrics.writes.WithLabelValues(resource).Inc()
		if r.target.resource == kube.EgressIPs {
			if e := c.world.EgressIP(r.target.name); e != nil {
				c.metrics.wrote(e, time.Now())
			}
			c.metrics.told(c.egressIPs.events[r.target.name])
			for _, e := range c.egressIPs.takeEvents(r.target.name) {
				c.post(e)
			}
		}
		if s := c.world.Service(r.target.name); r.target.resource == kube.Services && s != nil {
			for _, e := range c.services.takeEvents(s) {
				c.post(e)
			}
		}
	case apierrors.IsConflict(r.err) || apierrors.IsNotFound(r.err):
		c.log.Debug("the object changed while it was written; trying again with what it is now", "error", r.err)
	default:
		c.metrics.writeErrors.WithLabelValues(resource).Inc()
		c.log.Warn("write failed; trying again", "error", r.err)
	}
	c.refresh(r.target)
	c.settle(r.target)
}

// refresh takes in what the world shows of one object now.
func (c *Controller) refresh(t target) {
	switch t.resource {
	case kube.Nodes:
		c.nodes.seeOne(c.world, t.name)
	case kube.EgressIPs:
		if c.egressIPs.seeOne(c.world, t.name) {
			c.decideBy(c.egressIPs.seen(c.world, t.name, time.Now()))
		}
	}
}
