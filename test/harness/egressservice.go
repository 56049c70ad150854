package harness

import (
	"context"
	"encoding/json"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
)

// CreateEgressService makes an EgressService.
func (c *Cluster) CreateEgressService(ctx context.Context, s *v1.EgressService) error {
	return c.Egret.EgressIP.Post().Namespace(s.Namespace).Resource("egressservices").Body(s).Do(ctx).Error()
}

// DeleteEgressService removes an EgressService, if it is there.
func (c *Cluster) DeleteEgressService(ctx context.Context, namespace, name string) error {
	err := c.Egret.EgressIP.Delete().Namespace(namespace).Resource("egressservices").Name(name).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// EgressService reads an EgressService.
func (c *Cluster) EgressService(ctx context.Context, namespace, name string) (*v1.EgressService, error) {
	s := &v1.EgressService{}
	return s, c.Egret.EgressIP.Get().Namespace(namespace).Resource("egressservices").Name(name).Do(ctx).Into(s)
}

// CreateLoadBalancer makes a Service of that type, and gives it its ingress IPs in a load balancer's place.
func (c *Cluster) CreateLoadBalancer(ctx context.Context, s *corev1.Service, ips ...netip.Addr) error {
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	services := c.Core.CoreV1().Services(s.Namespace)
	if _, err := services.Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return err
	}
	var status corev1.ServiceStatus
	for _, ip := range ips {
		status.LoadBalancer.Ingress = append(status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip.String()})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = services.Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// DeleteService removes a Service, if it is there.
func (c *Cluster) DeleteService(ctx context.Context, namespace, name string) error {
	err := c.Core.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
