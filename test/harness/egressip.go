package harness

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
)

// CreateEgressIP makes an EgressIP.
func (c *Cluster) CreateEgressIP(ctx context.Context, e *v1.EgressIP) error {
	return c.Egret.EgressIP.Post().Resource("egressips").Body(e).Do(ctx).Error()
}

// DeleteEgressIP removes an EgressIP, if it is there.
func (c *Cluster) DeleteEgressIP(ctx context.Context, name string) error {
	err := c.Egret.EgressIP.Delete().Resource("egressips").Name(name).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// EgressIP reads an EgressIP.
func (c *Cluster) EgressIP(ctx context.Context, name string) (*v1.EgressIP, error) {
	e := &v1.EgressIP{}
	return e, c.Egret.EgressIP.Get().Resource("egressips").Name(name).Do(ctx).Into(e)
}

// EgressIPs reads all EgressIPs.
func (c *Cluster) EgressIPs(ctx context.Context) ([]v1.EgressIP, error) {
	list := &v1.EgressIPList{}
	err := c.Egret.EgressIP.Get().Resource("egressips").Do(ctx).Into(list)
	return list.Items, err
}

// PatchEgressIP merges a patch into an EgressIP.
func (c *Cluster) PatchEgressIP(ctx context.Context, name string, patch []byte) error {
	return c.Egret.EgressIP.Patch(types.MergePatchType).Resource("egressips").Name(name).Body(patch).Do(ctx).Error()
}
