package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	apiv1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// releasePoll is how often Release looks whether the node still holds anything.
const releasePoll = 100 * time.Millisecond

// Release makes this node give up its egress IPs before it is shut down, as planned moves: it annotates the Node with
// EgressCordonShutdown and the boot id, and returns when the node's agent says that it holds nothing any more. An agent of the next boot
// removes the annotation. When ctx ends before, the error names what is still held.
func Release(ctx context.Context, c *kube.Clients, node, bootID string) error {
	api := &API{Node: node, Clients: c, Observe: func(any) error { return nil }}
	if err := api.AnnotateNode(ctx, map[string]string{apiv1.AnnotationEgressCordon: apiv1.EgressCordonShutdown + bootID}); err != nil {
		return err
	}
	tick := time.NewTicker(releasePoll)
	defer tick.Stop()
	for {
		held, err := stillHeld(ctx, c, node, bootID)
		if err == nil && len(held) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("what node %s holds is not known: %w", node, err)
			}
			return fmt.Errorf("node %s still holds %s: is egret-controller running, and egret-node on its successors?", node, strings.Join(held, ", "))
		}
	}
}

// stillHeld are the addresses that the node's agent says it holds in this boot.
func stillHeld(ctx context.Context, c *kube.Clients, node, bootID string) ([]string, error) {
	o := &egretv1.EgressNode{}
	err := c.Egret.Get().Resource("egressnodes").Name(node).Do(ctx).Into(o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || o.Status.BootID != bootID {
		return nil, err
	}
	var held []string
	for _, h := range o.Status.Holding {
		held = append(held, h.IP)
	}
	return held, nil
}

// uncordon removes the annotation that Release wrote before this boot.
func (a *Agent) uncordon(ctx context.Context, version string) {
	if a.uncordoning.Swap(true) {
		return
	}
	go func() {
		defer a.uncordoning.Store(false)
		if err := a.api.Uncordon(ctx, version); err != nil {
			a.log.Warn("could not remove the annotation of the former shutdown; will try again", "error", err)
			time.AfterFunc(time.Second, func() { a.loop.Do(func(*world.World) []world.Touch { return nil }) })
			return
		}
		a.log.Info("egress IPs may come here again: the annotation of the former shutdown is gone")
	}()
}
