package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Bare is a pod without probes, token or Services' environment, that nothing schedules.
func Bare(namespace, name, node, image string, args ...string) *corev1.Pod {
	no, now := false, int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			TerminationGracePeriodSeconds: &now,
			Containers: []corev1.Container{{Name: "main", Image: image, Args: args,
				ImagePullPolicy: corev1.PullNever}},
		},
	}
}

// EnsureNamespace makes a namespace, and waits for the service account that its pods need.
func (c *Cluster) EnsureNamespace(ctx context.Context, name string) error {
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := c.Core.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	return Until(ctx, time.Minute, 50*time.Millisecond, func() error {
		_, err := c.Core.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// RunningPod makes a pod that sleeps, or takes the one that is there, and waits for its address.
func (c *Cluster) RunningPod(ctx context.Context, namespace, name, node string) (*corev1.Pod, error) {
	if err := c.EnsureNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	pods := c.Core.CoreV1().Pods(namespace)
	if _, err := pods.Create(ctx, Bare(namespace, name, node, "localhost/agnhost:latest", "pause"),
		metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	var p *corev1.Pod
	return p, Until(ctx, time.Minute, 100*time.Millisecond, func() error {
		var err error
		if p, err = pods.Get(ctx, name, metav1.GetOptions{}); err == nil && p.Status.PodIP == "" {
			err = fmt.Errorf("pod %s has no address yet", name)
		}
		return err
	})
}

// LabelPod sets a label; an empty value removes it.
func (c *Cluster) LabelPod(ctx context.Context, namespace, name, key, value string) error {
	text := fmt.Sprintf("%q", value)
	if value == "" {
		text = "null"
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, text)
	_, err := c.Core.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	return err
}

// netnsOf finds, inside a node, the network namespace that has a pod's address.
const netnsOf = `for n in /run/netns/*; do
	nsenter --net="$n" ip -o addr show | grep -qF " $1/" && { echo "$n"; exit; }
done
exit 1`

// InPod runs a program of the node in a pod's network namespace, until the job is stopped.
func (c *Cluster) InPod(ctx context.Context, p *corev1.Pod, program ...string) (*Job, error) {
	ns, err := c.ExecIn(ctx, p.Spec.NodeName, "bash", "-c", netnsOf, "bash", p.Status.PodIP)
	if err != nil {
		return nil, fmt.Errorf("network namespace of pod %s: %w", p.Name, err)
	}
	return c.Start(p.Spec.NodeName,
		append([]string{"nsenter", "--net=" + strings.TrimSpace(string(ns))}, program...)...)
}
