package harness

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
)

const traffics = "egressiptraffics"

// CreateTraffic makes an EgressIPTraffic of networks.
func (c *Cluster) CreateTraffic(ctx context.Context, name string, labels map[string]string, networks []v1.CIDR) error {
	t := &v1.EgressIPTraffic{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: v1.EgressIPTrafficSpec{DestinationNetworks: networks}}
	return c.Egret.EgressIP.Post().Resource(traffics).Body(t).Do(ctx).Error()
}

// PatchTraffic changes an EgressIPTraffic by a JSON patch (RFC 6902), which names one network of many.
func (c *Cluster) PatchTraffic(ctx context.Context, name, patch string) error {
	return c.Egret.EgressIP.Patch(types.JSONPatchType).Resource(traffics).Name(name).Body([]byte(patch)).Do(ctx).Error()
}
