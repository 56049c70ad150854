package harness

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/egret-net/egret/internal/kube"
)

// FakePod is the i-th pod of a fake node: an object with the addresses that the node's agent would have written.
func FakePod(namespace string, n *FakeNode, i int, labels map[string]string) *corev1.Pod {
	p := Bare(namespace, fmt.Sprintf("%s-%d", n.Name, i), n.Name, "localhost/pause:1")
	number := n.Subnet.Addr().AsSlice()
	last := len(number) - 1
	number[last] = byte(10 + i)
	ip, _ := netip.AddrFromSlice(number)
	mac := fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", number[0], number[last-8%len(number)], number[last-1], number[last])
	p.Labels = labels
	p.Annotations = kube.PodAnnotations([]netip.Prefix{netip.PrefixFrom(ip, n.Subnet.Bits())}, mac,
		[]netip.Addr{n.Subnet.Addr().Next()})
	return p
}

// CreatePods makes pods, or takes those that are there.
func (c *Cluster) CreatePods(ctx context.Context, pods []*corev1.Pod) error {
	return Each(ctx, pods, func(ctx context.Context, p *corev1.Pod) error {
		_, err := c.Core.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// RunFakePods says of fake pods that they run and are Ready, so that Services have them as endpoints.
func (c *Cluster) RunFakePods(ctx context.Context, pods []*corev1.Pod) error {
	return Each(ctx, pods, func(ctx context.Context, p *corev1.Pod) error {
		patch := fmt.Sprintf(`{"status":{"phase":"Running","podIP":%[1]q,"podIPs":[{"ip":%[1]q}],`+
			`"conditions":[{"type":"Ready","status":"True"}]}}`, kube.Pod(p).IPs[0])
		_, err := c.Core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}, "status")
		return err
	})
}

// RemovePods removes the pods with these labels at once. The API server gives a request up after a minute: what it has
// not removed by then needs another.
func (c *Cluster) RemovePods(ctx context.Context, namespace, selector string) error {
	now := int64(0)
	return Until(ctx, 5*time.Minute, time.Second, func() error {
		return c.Core.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
			metav1.ListOptions{LabelSelector: selector})
	})
}
