package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// renewalsPerLease is how often an agent renews its Lease in the time that a renewal lasts: some may fail.
const renewalsPerLease = 4

// keepLease renews this agent's Lease until ctx is done, as long as the loop goes round. After a failure it is tried
// again in half of the time. The Lease stays when the agent ends: the next one has as long as a renewal lasts.
//
// A renewal that is gone says that etcd was restored. An agent that stood still meanwhile learns it by nothing else: if
// the API server has got as far again as its watches were, these go on in the other history.
func (a *Agent) keepLease(ctx context.Context, lasts time.Duration) {
	if lasts == 0 {
		return
	}
	complained, last := false, ""
	for {
		next := time.Now().Add(lasts / renewalsPerLease)
		version, err := a.renewOrList(ctx, lasts, last)
		last = cmp.Or(version, last)
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

// renewOrList renews it, and has all kinds be listed if the last renewal is gone.
func (a *Agent) renewOrList(ctx context.Context, lasts time.Duration, last string) (version string, err error) {
	version, err = a.renewLease(ctx, lasts, last)
	if errors.Is(err, kube.ErrLeaseWentBack) {
		a.log.Warn("the last renewal of the agent's Lease is gone: etcd was restored; all is listed again")
		a.source.ListAgain()
		version, err = a.renewLease(ctx, lasts, "")
	}
	return version, err
}

// errNoNode: the world does not have this node's Node, as when the agent has just started.
var errNoNode = errors.New("the Node is not known yet")

// renewLease fails where the loop stands still, by the measure of /healthz.
func (a *Agent) renewLease(ctx context.Context, lasts time.Duration, last string) (version string, err error) {
	uid := ""
	short, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	err = a.loop.Ask(short, func(w *world.World) {
		if n := w.Node(a.self); n != nil {
			uid = n.UID
		}
	})
	if err != nil {
		return "", fmt.Errorf("the loop stands still: %w", err)
	}
	if uid == "" {
		return "", errNoNode
	}
	return a.api.RenewLease(ctx, uid, lasts, last)
}
