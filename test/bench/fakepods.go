package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/kube"
)

// fakePod is the i-th pod of a fake node: an object with the addresses that the node's agent would have written.
func fakePod(space string, n *fakeNode, i int, labels map[string]string) *corev1.Pod {
	p := bare(fmt.Sprintf("%s-%d", n.name, i), n.name, "localhost/pause:1")
	number := n.subnet.Addr().AsSlice()
	last := len(number) - 1
	number[last] = byte(10 + i)
	ip, _ := netip.AddrFromSlice(number)
	mac := fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", number[0], number[last-8%len(number)], number[last-1], number[last])
	p.Namespace, p.Labels = space, labels
	p.Annotations = kube.PodAnnotations([]netip.Prefix{netip.PrefixFrom(ip, n.subnet.Bits())}, mac, []netip.Addr{n.subnet.Addr().Next()})
	return p
}

func (c *cluster) createPods(ctx context.Context, pods []*corev1.Pod) error {
	return each(ctx, pods, func(ctx context.Context, p *corev1.Pod) error {
		_, err := c.core.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// removePods removes the pods with these labels at once. The API server gives a request up after a minute: what it has not removed by then needs
// another.
func (c *cluster) removePods(ctx context.Context, space, selector string) error {
	now := int64(0)
	return until(ctx, 5*time.Minute, time.Second, func() error {
		return c.core.CoreV1().Pods(space).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: selector})
	})
}
