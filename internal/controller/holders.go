package controller

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/kube"
)

// HolderKinds are the kinds that say which node may translate to which address, and which may be given one. A
// controller that begins to lead reads them first, statuses before reports of nodes, and these before Nodes: a report
// counts once its node is known to have booted so. Watches do not tell it. Those of a controller that was cut off go on
// up to 30 s later, each at its own time (client-go's backoff, 0.37). Another controller may have given an address to a
// node meanwhile, and that node may hang; or to one that this controller does not know to be there, or for a Service
// that it does not know.
func HolderKinds() []kube.Kind {
	return []kube.Kind{kube.EgressIPs(), kube.EgressServices(), kube.EgressNodes(), kube.Nodes(), kube.Services(),
		kube.EndpointSlices()}
}

// readAgain is the pause after a list that failed.
const readAgain = 200 * time.Millisecond

// readHolders returns when the changes that bring these kinds into the world are queued; false if ctx is done before.
func (c *Controller) readHolders(ctx context.Context) bool {
	for _, k := range HolderKinds() {
		for {
			err := c.source.ReadNow(ctx, k, "")
			if err == nil {
				break
			}
			c.log.Warn("leads once it has read who holds egress IPs", "err", err)
			select {
			case <-ctx.Done():
				return false
			case <-time.After(readAgain):
			}
		}
	}
	return true
}
