package harness

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// EnsureNetwork makes a namespace with a primary network of its own, of layer 3, if they are not there. It waits for
// the service account that the pods need.
func (c *Cluster) EnsureNetwork(ctx context.Context, namespace string, subnets ...v1.Layer3Subnet) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace,
		Labels: map[string]string{v1.LabelPrimaryNetwork: ""}}}
	if _, err := c.Core.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	n := &v1.UserDefinedNetwork{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "net"}}
	n.Spec = v1.UserDefinedNetworkSpec{Topology: v1.TopologyLayer3,
		Layer3: &v1.Layer3Config{Role: v1.RolePrimary, Subnets: subnets}}
	if err := c.Egret.EgressIP.Post().Namespace(namespace).Resource("userdefinednetworks").Body(n).Do(ctx).
		Error(); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return Until(ctx, time.Minute, 50*time.Millisecond, func() error {
		_, err := c.Core.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
