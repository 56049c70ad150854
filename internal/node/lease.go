package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// renewalsPerLease is how often an agent renews its Lease in the time that a renewal lasts: some may fail.
const renewalsPerLease = 4

// keepLease renews this agent's Lease until ctx is done, as long as the loop goes round. After a failure it is tried
// again in half of the time. The Lease stays when the agent ends: the next one has as long as a renewal lasts.
func (a *Agent) keepLease(ctx context.Context, lasts time.Duration) {
	if lasts == 0 {
		return
	}
	complained := false
	for {
		next := time.Now().Add(lasts / renewalsPerLease)
		err := a.renewLease(ctx, lasts)
		if err != nil {
			next = time.Now().Add(lasts / renewalsPerLease / 2)
		}
		if err != nil && !complained && ctx.Err() == nil && !errors.Is(err, errNoNode) {
			a.log.Warn("controllers will take this agent for dead; trying again", "in", lasts, "error", err)
		}
		complained = err != nil && (complained || !errors.Is(err, errNoNode))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
	}
}

// errNoNode: the world does not have this node's Node, as when the agent has just started.
var errNoNode = errors.New("the Node is not known yet")

// renewLease fails where the loop stands still, by the measure of /healthz.
func (a *Agent) renewLease(ctx context.Context, lasts time.Duration) error {
	uid := ""
	short, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	err := a.loop.Ask(short, func(w *world.World) {
		if n := w.Node(a.self); n != nil {
			uid = n.UID
		}
	})
	if err != nil {
		return fmt.Errorf("the loop stands still: %w", err)
	}
	if uid == "" {
		return errNoNode
	}
	return a.api.RenewLease(ctx, uid, lasts)
}
