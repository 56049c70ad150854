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

// post hands an Event to those who post them.
func (c *Controller) post(e kube.Event) {
	select {
	case c.events <- e:
	default:
		c.metrics.eventErrors.Inc()
	}
}

// startEvents posts Events beside the loop until ctx is done. A failed one is not tried again: the conditions say the same.
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
