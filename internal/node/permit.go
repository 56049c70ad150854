package node

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/egret-net/egret/internal/world"
)

// permitEvery is how often the agent says that it is there: a few times in the 20 s after which OVN's answers depend on what others claim.
const permitEvery = 5 * time.Second

// permit renews the permission to answer for egress IPs until ctx ends (dead man's handle, in feature egressip). It asks the loop first: an agent whose loop
// stands still is as good as gone.
func (a *Agent) permit(ctx context.Context, renew func(context.Context) error) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if a.loop.Ask(ctx, func(*world.World) {}) != nil {
			return
		}
		if err := renew(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("could not renew the permission to answer for egress IPs: if another machine claims one within 20 s, it gets it", "error", err)
		}
	}, permitEvery)
}
