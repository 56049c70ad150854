package controller

import (
	"context"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/kube"
)

const (
	// eventBacklog is how many Events wait, and how many beside these for being tried again; more are dropped, for they
	// are not worth waiting for.
	eventBacklog = 4096
	eventPosters = 4
	// eventAttempts bounds how often an Event is posted. The pauses double, from one pulse on: they are two minutes.
	eventAttempts = 8
	// lastEvents is how long a controller that ends waits for the Events that it has yet to post.
	lastEvents = 2 * time.Second
)

// posting is a pending Event.
type posting struct {
	kube.Posting
	failed int // how often that has failed
	pulses int // until it is tried again
}

// queueEvent has an Event posted at the next pulse, within a second. Programs that act on a status must not wait for
// text that only people read, nor share API server and processors with it.
func (c *Controller) queueEvent(e kube.Event) {
	c.told = append(c.told, posting{Posting: kube.NewPosting(e, c.now())})
}

// handEvents gives what waits to those who post Events.
func (c *Controller) handEvents() {
	for _, p := range c.told {
		select {
		case c.events <- p:
		default:
			c.metrics.eventErrors.Inc()
		}
	}
	c.told = nil
}

// putOff has an Event that could not be posted tried again some pulses later, unless that was often enough.
func (c *Controller) putOff(p posting) {
	if p.failed == eventAttempts || len(c.late) == eventBacklog {
		c.metrics.eventErrors.Inc()
		return
	}
	p.pulses = 1 << (p.failed - 1)
	c.late = append(c.late, p)
}

// handLate is called at each pulse: it has those posted for which that was the last one to wait for.
func (c *Controller) handLate() {
	left := c.late[:0]
	for _, p := range c.late {
		if p.pulses--; p.pulses > 0 {
			left = append(left, p)
		} else {
			c.told = append(c.told, p)
		}
	}
	c.late = left
}

// startEvents posts Events beside the loop. end posts what is left, when ctx is done: another leader does not know what
// this one has decided.
func (c *Controller) startEvents(ctx context.Context) (end func()) {
	var posters sync.WaitGroup
	for range eventPosters {
		posters.Go(func() { c.postEvents(ctx) })
	}
	return func() {
		c.handEvents()
		close(c.events)
		posted := make(chan struct{})
		go func() { posters.Wait(); close(posted) }()
		select {
		case <-posted:
		case <-time.After(lastEvents):
		}
	}
}

// postEvents brings back to the loop what may be posted later.
func (c *Controller) postEvents(ctx context.Context) {
	for p := range c.events {
		timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		err := c.writer.PostEvent(timed, p.Posting)
		cancel()
		if err != nil && ctx.Err() == nil {
			c.notPosted(ctx, p, err)
		}
	}
}

func (c *Controller) notPosted(ctx context.Context, p posting, err error) {
	c.log.Warn("event not posted", "attempt", p.failed+1, "error", err)
	p.failed++
	if !kube.Passes(err) {
		p.failed = eventAttempts
	}
	select {
	case c.untold <- p:
	case <-ctx.Done():
	}
}
