package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	apiv1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// releasePoll is how often Release looks whether the node still holds anything, and how soon it asks again what the API
// server refused.
const releasePoll = 100 * time.Millisecond

// Release makes this node give up its egress IPs before it is shut down, as planned moves: it sees to it that the Node
// is cordoned, and returns when the node's agent says that it holds nothing any more. When ctx ends before, the error
// names what is still held.
func Release(ctx context.Context, c *kube.Clients, node, bootID string) error {
	return releaseFor(ctx, c, node, bootID, func(*corev1.Node) (string, bool) { return bootID, true })
}

// ReleaseIfLeaving is Release for the end of an agent's pod. It does nothing unless the whole node goes: it has been
// drained, is being deleted, or its kubelet says that it shuts down. An agent that is replaced moves nothing.
func ReleaseIfLeaving(ctx context.Context, c *kube.Clients, node, bootID string) error {
	return releaseFor(ctx, c, node, bootID, func(n *corev1.Node) (string, bool) {
		switch {
		case shutsDown(n), n.DeletionTimestamp != nil:
			return bootID, true
		case n.Spec.Unschedulable:
			return bootID + apiv1.EgressCordonDrained, true
		}
		return "", false
	})
}

// shutsDown says whether the kubelet has begun to end the node's pods for a shutdown (GracefulNodeShutdown).
func shutsDown(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue &&
			strings.Contains(c.Message, "node is shutting down")
	})
}

// releaseFor cordons for the boot that leaving says, if the node is.
func releaseFor(ctx context.Context, c *kube.Clients, node, bootID string,
	leaving func(*corev1.Node) (boot string, is bool)) error {
	api := &API{Node: node, BootID: bootID, Clients: c, Observe: func(any) error { return nil }}
	stays := false
	if err := pollUntil(ctx, func() error {
		n := &corev1.Node{}
		if err := c.Core.Get().Resource("nodes").Name(node).Do(ctx).Into(n); err != nil {
			return err
		}
		boot, is := leaving(n)
		if stays = !is; stays {
			return nil
		}
		return cordonNode(ctx, api, n, boot)
	}); err != nil {
		return fmt.Errorf("node %s could not be cordoned: %w", node, err)
	}
	if stays {
		return nil
	}
	return pollUntil(ctx, func() error { return checkReleased(ctx, api) })
}

// pollUntil tries until something succeeds. When ctx ends before, the error is the last that says more than that.
func pollUntil(ctx context.Context, try func() error) (last error) {
	tick := time.NewTicker(releasePoll)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last
		}
	}
}

// cordonNode annotates the Node with EgressCordonShutdown and a boot, which an agent of the next boot removes. Where
// somebody else has cordoned the node it leaves that alone: it has the same effect, and is to outlive the boot.
func cordonNode(ctx context.Context, api *API, n *corev1.Node, boot string) error {
	value, cordoned := n.Annotations[apiv1.AnnotationEgressCordon]
	if cordoned && !strings.HasPrefix(value, apiv1.EgressCordonShutdown) {
		return nil
	}
	return api.Cordon(ctx, n.ResourceVersion, apiv1.EgressCordonShutdown+boot)
}

// cordonIsOver says whether what Release wrote is of a former boot, or of a drain that is over.
func cordonIsOver(n *world.Node, boot string) bool {
	former, drained := strings.CutSuffix(n.CordonBoot, apiv1.EgressCordonDrained)
	return n.CordonBoot != "" && (former != boot || drained && !n.Unschedulable)
}

// checkReleased is nil when the node holds nothing any more.
func checkReleased(ctx context.Context, api *API) error {
	held, err := stillHeld(ctx, api)
	if err != nil {
		return fmt.Errorf("what node %s holds is not known: %w", api.Node, err)
	}
	if len(held) > 0 {
		return fmt.Errorf("node %s still holds %s: is egret-controller running, and egret-node on its successors?",
			api.Node, strings.Join(held, ", "))
	}
	return nil
}

// stillHeld are the addresses that the node's agent says it holds in this boot.
func stillHeld(ctx context.Context, api *API) ([]string, error) {
	o := &egretv1.EgressNode{}
	err := api.Clients.Egret.Get().Resource("egressnodes").Name(api.Node).Do(ctx).Into(o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || o.Status.BootID != api.BootID {
		return nil, err
	}
	var held []string
	for _, h := range o.Status.HeldAddresses { // EgressServices' are in no other list
		held = append(held, h.IP)
	}
	for _, h := range o.Status.Holding { // an agent of the previous version repeats these in the other list
		if !slices.Contains(held, h.IP) {
			held = append(held, h.IP)
		}
	}
	return held, nil
}

// uncordonNode removes the annotation that Release wrote before this boot.
func (a *API) uncordonNode(ctx context.Context, version string, log *slog.Logger) error {
	if err := a.Uncordon(ctx, version); err != nil {
		log.Warn("could not remove the annotation of the former shutdown; will try again", "error", err)
		return err
	}
	log.Info("egress IPs may come here again: the annotation of the former shutdown is gone")
	return nil
}
