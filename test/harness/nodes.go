package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
)

// EgressNodes labels these real nodes, and no others.
func (c *Cluster) EgressNodes(ctx context.Context, names ...string) error {
	for _, n := range c.Nodes() {
		if err := c.LabelEgress(ctx, n.Name, slices.Contains(names, n.Name)); err != nil {
			return err
		}
	}
	return nil
}

// LabelEgress makes a node an egress node, or none.
func (c *Cluster) LabelEgress(ctx context.Context, name string, is bool) error {
	if is {
		return c.LabelNode(ctx, name, v1.LabelEgressAssignable, "")
	}
	return c.UnlabelNode(ctx, name, v1.LabelEgressAssignable)
}

// LabelNode sets a label.
func (c *Cluster) LabelNode(ctx context.Context, name, key, value string) error {
	return c.PatchNode(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value))
}

func (c *Cluster) UnlabelNode(ctx context.Context, name, key string) error {
	return c.PatchNode(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, key))
}

// PatchNode merges a patch.
func (c *Cluster) PatchNode(ctx context.Context, name, patch string) error {
	_, err := c.Core.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// NodeWhole gives a node that is Ready with an agent that has reported in this boot, and what its agent reports; any
// other is an error.
func (c *Cluster) NodeWhole(ctx context.Context, name string) (*corev1.Node, *egretv1.EgressNode, error) {
	n, err := c.Core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	e := &egretv1.EgressNode{}
	if err := c.Egret.Egret.Get().Resource("egressnodes").Name(name).Do(ctx).Into(e); err != nil {
		return nil, nil, err
	}
	if !kube.Node(n).Ready || e.Status.BootID != n.Status.NodeInfo.BootID {
		return nil, nil, fmt.Errorf("node %s: Ready %v, booted as %s, its agent reports of %s",
			name, kube.Node(n).Ready, n.Status.NodeInfo.BootID, e.Status.BootID)
	}
	return n, e, nil
}

// Leader is the node whose controller leads.
func (c *Cluster) Leader(ctx context.Context) (node string, err error) {
	return node, Until(ctx, time.Minute, 100*time.Millisecond, func() error {
		l, err := c.Core.CoordinationV1().Leases("egret-system").Get(ctx, "egret-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" ||
			time.Since(l.Spec.RenewTime.Time) > time.Second {
			return fmt.Errorf("no controller leads")
		}
		node = *l.Spec.HolderIdentity
		return nil
	})
}
