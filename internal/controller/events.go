package controller

import (
	"context"

	"github.com/egret-net/egret/internal/kube"
)

const (
	// eventBacklog is how many Events wait; more are dropped, for they are not worth waiting for.
	eventBacklog = 4096
	eventPosters = 4
)

// post has an Event posted when no status is being written any more, or at the next pulse: what acts on a status must
// not wait for what only people read.
func (c *Controller) post(e kube.Event) { c.told = append(c.told, e) }

// handEvents gives what waits to those who post Events.
func (c *Controller) handEvents() {
	for _, e := range c.told {
		select {
		case c.events <- e:
		default:
			c.metrics.eventErrors.Inc()
		}
	}
	c.told = nil
}

// startEvents posts Events beside the loop until ctx is done. A failed one is not tried again: the conditions say the
// same.
func (c *Controller) startEvents(ctx context.Context) {
	for range eventPosters {
		go c.postEvents(ctx)
	}
}

func (c *Controller) postEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-c.events:
			timed, cancel := context.WithTimeout(ctx, writeTimeout)
			if err := c.writer.PostEvent(timed, e); err != nil && ctx.Err() == nil {
				c.metrics.eventErrors.Inc()
				c.log.Warn("event not posted", "error", err)
			}
			cancel()
		}
	}
}
