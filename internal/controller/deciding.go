package controller

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// writtenKinds returns the kinds of objects that deciders decide about.
func writtenKinds(kinds feature.Kinds) map[world.Kind]kube.Kind {
	written := map[world.Kind]kube.Kind{}
	for _, k := range kube.Followed(kinds.AllResources()...) {
		if k.Writing().Write != nil {
			written[k.Writing().Kind] = k
		}
	}
	return written
}

// news are Events about the pending write of an object.
type news struct {
	uid    string
	events []decide.Event
	sent   int // how many of them, the first, tell of the write that is under way
}

// mostNews bounds the Events that wait for an object's write: while it cannot be written, its author's changes make
// more and more of them. The first of those that are not under way make room.
const mostNews = 64

func (n *news) addEvent(e decide.Event) {
	e.Message = world.Plain(e.Message, kube.NoteLimit)
	if len(n.events)-n.sent == mostNews {
		n.events = slices.Delete(n.events, n.sent, n.sent+1)
	}
	n.events = append(n.events, e)
}

// deciderOf returns the one decider of a type, for the metrics that describe it.
func deciderOf[T decide.Decider](all []decide.Decider) (one T) {
	for _, d := range all {
		if is, ok := d.(T); ok {
			return is
		}
	}
	return one
}

func (c *Controller) decideView(now time.Time) decide.View {
	return decide.View{World: c.world, Now: now.UTC().Truncate(time.Microsecond)}
}

// decideAll asks all deciders, and writes what differs from what the API shows.
func (c *Controller) decideAll(now time.Time) {
	var decided []target
	c.passTime(now)
	for _, d := range c.deciders {
		desired, again := d.Decide(c.decideView(now))
		c.decideBy(again)
		for _, one := range desired {
			if c.composeDesired(one) {
				c.decideBy(now) // others may follow from it, of the same decider, too
			}
			decided = append(decided, target{one.Kind, one.Key})
			// Conditions alone are no change of the world.
			c.metrics.tally.NoteChanged(world.Entry{Kind: one.Kind, Key: one.Key})
		}
	}
	c.passTime(now) // addresses that were taken from nodes just now
	c.metrics.latencies.allDecided(deciderOf[*egressip.Assigner](c.deciders), now)
	for _, t := range decided {
		c.writeIfNeeded(t)
	}
	for t := range c.outbox.letters { // also those of objects that are gone
		c.writeIfNeeded(t)
	}
	c.metrics.forgetGone(c.world)
	c.metrics.tally.CountStale(c.world, deciderOf[*egressip.Overlapper](c.deciders).Pods())
}

// passTime lets time pass in the world.
func (c *Controller) passTime(now time.Time) {
	c.decideBy(c.world.Pass(now))
}

// composeDesired puts what is desired of an object over what the API shows of it, and keeps the Events of that until it
// is written. It says whether that is news.
func (c *Controller) composeDesired(d decide.Desired) (is bool) {
	c.changed = c.changed[:0]
	c.world.Decide(d.Kind, d.Key, d.Decision)
	t := target{d.Kind, d.Key}
	if is = len(c.changed) > 0; is {
		c.outbox.noteDecided(t)
	}
	n := c.news[t]
	if n.uid != d.Decision.UID {
		n = news{uid: d.Decision.UID}
	}
	for _, e := range d.Events {
		if e.Happened {
			c.postEvent(t, n.uid, e)
		} else {
			n.addEvent(e)
		}
	}
	if len(n.events) > 0 {
		c.news[t] = n
	}
	return is
}

// writeIfNeeded writes one object if it is not what it should be.
func (c *Controller) writeIfNeeded(t target) {
	w := c.kinds[t.kind].Writing().Write(c.world, t.key)
	if w == nil {
		if c.outbox.noteSettled(t, c.now()) {
			delete(c.news, t) // their decision was reverted before it was written
		}
		return
	}
	sent := c.outbox.writeObject(t, w, c.now(), func(ctx context.Context) (string, error) {
		return c.writer.Patch(ctx, w.Patch(c.now()))
	})
	if n, is := c.news[t]; sent && is {
		n.sent = len(n.events)
		c.news[t] = n
	}
}

// takeResult takes the end of a write or of a pause.
func (c *Controller) takeResult(r result) {
	if c.outbox == nil || !c.outbox.takeResult(r) {
		return
	}
	kind := c.kinds[r.target.kind].Writing()
	switch {
	case r.woken:
	case r.err == nil:
		c.metrics.writes.WithLabelValues(kind.Plural).Inc()
		c.metrics.countWrite(c.world, r.target, c.postWritten(kind, r.target), c.now())
	case apierrors.IsConflict(r.err) || apierrors.IsNotFound(r.err) || apierrors.IsAlreadyExists(r.err):
		c.log.Debug("the object changed while it was written; trying again with what it is now", "error", r.err)
	default:
		c.metrics.writeErrors.WithLabelValues(kind.Plural).Inc()
		c.log.Warn("write failed; trying again", "error", r.err)
	}
	c.writeIfNeeded(r.target)
	for t, is := c.outbox.nextQueued(); is; t, is = c.outbox.nextQueued() {
		c.writeIfNeeded(t)
	}
}

// postWritten has the Events posted of what was just written, and returns them. Decisions of the meantime are still
// pending.
func (c *Controller) postWritten(kind kube.Written, t target) []decide.Event {
	n := c.news[t]
	told := n.events[:n.sent]
	if n.events, n.sent = n.events[n.sent:], 0; len(n.events) > 0 {
		c.news[t] = n
	} else {
		delete(c.news, t)
	}
	for _, e := range told {
		c.postEvent(t, n.uid, e)
	}
	return told
}

// postEvent has an Event about an object posted.
func (c *Controller) postEvent(t target, uid string, e decide.Event) {
	c.events.queueEvent(kube.Event{Regarding: c.kinds[t.kind].Writing().Reference(t.key, uid),
		Warning: e.Warning, Reason: e.Reason, Action: e.Action, Note: e.Message}, c.now())
}
