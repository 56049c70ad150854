package main

import (
	"context"
	"fmt"

	"github.com/egret-net/egret/test/harness"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func manyName(i int) string { return fmt.Sprint("svc-", i) }

// fillServices makes so many Services, selectorless, and their EndpointSlices.
func (c *cluster) fillServices(ctx context.Context, number int, nodes []*harness.FakeNode) error {
	if err := c.EnsureNamespace(ctx, manySpace); err != nil {
		return err
	}
	return harness.Each(ctx, upTo(number), func(ctx context.Context, i int) error {
		_, err := c.Core.CoreV1().Services(manySpace).Create(ctx, manyService(i), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		_, err = c.Core.DiscoveryV1().EndpointSlices(manySpace).Create(ctx, manySlice(i, nodes), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func manyService(i int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: manyName(i)}}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
	return s
}

// manySlice has endpoints on ten nodes; each address is an endpoint of many Services, on a port of its own.
func manySlice(i int, nodes []*harness.FakeNode) *discoveryv1.EndpointSlice {
	name, port, yes := "http", int32(8000+i), true
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Name, s.Labels = manyName(i), map[string]string{discoveryv1.LabelServiceName: manyName(i)}
	s.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port}}
	for j := range endpointsAService {
		n := nodes[(i+j)%len(nodes)]
		address := n.Subnet.Addr().As4()
		address[3] = byte(10 + (i/len(nodes))%200)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("%d.%d.%d.%d", address[0], address[1], address[2], address[3])},
			NodeName:   &n.Name,
			Conditions: discoveryv1.EndpointConditions{Ready: &yes},
		})
	}
	return s
}
