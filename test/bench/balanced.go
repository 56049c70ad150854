package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/traffic"
)

// balanced is a Service of type LoadBalancer with one ingress IP, and its EgressService, whose host is an egress node.
type balanced struct {
	*cluster
	name string
	ip   netip.Addr
	pods map[string]string // labels that it selects
}

func (o balanced) create(ctx context.Context) error {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.name}}
	s.Spec.Selector = o.pods
	s.Spec.Ports = []corev1.ServicePort{{Port: traffic.EchoPort}}
	if err := o.CreateLoadBalancer(ctx, s, o.ip); err != nil {
		return err
	}
	e := &v1.EgressService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.name}}
	e.Spec.NodeSelector.MatchLabels = map[string]string{v1.LabelEgressAssignable: ""}
	return o.CreateEgressService(ctx, e)
}

func (o balanced) remove(ctx context.Context) error {
	return errors.Join(o.DeleteEgressService(ctx, namespace, o.name), o.DeleteService(ctx, namespace, o.name))
}

func (o balanced) where(ctx context.Context) (map[netip.Addr]string, error) {
	s, err := o.EgressService(ctx, namespace, o.name)
	if err == nil && !meta.IsStatusConditionTrue(s.Status.Conditions, v1.ConditionReady) {
		err = fmt.Errorf("EgressService %s is on %q; conditions %+v", o.name, s.Status.Host, s.Status.Conditions)
	}
	return map[netip.Addr]string{o.ip: s.Status.Host}, err
}
