package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

const (
	namespace = "chaos"
	groupKey  = "chaos-group"
)

// numbers are the last parts of an EgressIP's addresses: those that it has, and those that a respec gives it.
type numbers struct{ usual, other []int }

// egressIPs are by name, which is also their pods' value of groupKey.
var egressIPs = map[string]numbers{"chaos-a": {[]int{70, 71}, []int{70, 72}}, "chaos-b": {[]int{80}, []int{81}}}

// otherOf is where a relabel takes a pod.
var otherOf = map[string]string{"chaos-a": "chaos-b", "chaos-b": "chaos-a"}

// cluster is the sandbox with what the program puts there: three egress nodes, two EgressIPs, and on each node a pod
// of each and one of none.
type cluster struct {
	*sandbox.Cluster
	core *kubernetes.Clientset
	kube *kube.Clients
}

func begin(ctx context.Context, o sandbox.Options, log io.Writer) (*cluster, error) {
	s, err := sandbox.Up(ctx, o, log)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: s}
	if c.core, err = s.Client(); err != nil {
		return nil, err
	}
	config, err := kube.Config(s.Kubeconfig(), -1, "egret-chaos") // no limit
	if err != nil {
		return nil, err
	}
	if c.kube, err = kube.NewClients(config); err != nil {
		return nil, err
	}
	return c, errors.Join(traffic.Install(ctx, s), c.fill(ctx))
}

// fill makes all objects.
func (c *cluster) fill(ctx context.Context) error {
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := c.core.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := until(ctx, time.Minute, func() error {
		_, err := c.core.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	for name, n := range egressIPs {
		err = errors.Join(err, c.create(ctx, name, n.usual))
	}
	for _, n := range c.Nodes() {
		err = errors.Join(err, c.patchNode(ctx, n.Name, label(true)))
	}
	return err
}

func (c *cluster) create(ctx context.Context, name string, n []int) error {
	e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, ip := range c.addresses(n) {
		e.Spec.EgressIPs = append(e.Spec.EgressIPs, ip.String())
	}
	e.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": namespace}
	e.Spec.PodSelector.MatchLabels = map[string]string{groupKey: name}
	return c.kube.EgressIP.Post().Resource("egressips").Body(e).Do(ctx).Error()
}

// addresses with these numbers in the primary network, in each family.
func (c *cluster) addresses(numbers []int) []netip.Addr {
	var out []netip.Addr
	for _, n := range numbers {
		for _, ip := range c.Nodes()[0].IPs {
			bytes := ip.AsSlice()
			bytes[len(bytes)-1] = byte(n)
			a, _ := netip.AddrFromSlice(bytes)
			out = append(out, a)
		}
	}
	return out
}

// senders are the pods: one of each EgressIP and one of none on each node.
func (c *cluster) senders() map[string]*sender {
	out := map[string]*sender{}
	for _, node := range c.Nodes() {
		for group, short := range map[string]string{"": "plain", "chaos-a": "a", "chaos-b": "b"} {
			name := short + "-" + node.Name
			out[name] = &sender{name: name, node: node.Name, group: history[string]{{value: group}}}
		}
	}
	return out
}

func (c *cluster) createPod(ctx context.Context, s *sender) error {
	labels := map[string]string{groupKey: s.group.last()}
	pod := traffic.SenderPod(namespace, s.name, s.node, labels, traffic.Sinks(c.Cluster))
	_, err := c.core.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// recreatePod returns when the pod has been asked for anew.
func (c *cluster) recreatePod(ctx context.Context, s *sender) error {
	pods := c.core.CoreV1().Pods(namespace)
	if err := pods.Delete(ctx, s.name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return until(ctx, time.Minute, func() error {
		err := c.createPod(ctx, s)
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("the former pod is still there: %w", err)
		}
		return err
	})
}

func (c *cluster) labelPod(ctx context.Context, name, group string) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, groupKey, group)
	_, err := c.core.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (c *cluster) patchNode(ctx context.Context, name, patch string) error {
	_, err := c.core.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// label is the patch that makes a node an egress node, or none.
func label(egress bool) string {
	if egress {
		return `{"metadata":{"labels":{"k8s.ovn.org/egress-assignable":""}}}`
	}
	return `{"metadata":{"labels":{"k8s.ovn.org/egress-assignable":null}}}`
}

func (c *cluster) respec(ctx context.Context, name string, ips []netip.Addr) error {
	text := ""
	for i, ip := range ips {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("%q", ip)
	}
	patch := []byte(`{"spec":{"egressIPs":[` + text + `]}}`)
	return c.kube.EgressIP.Patch(types.MergePatchType).Resource("egressips").Name(name).Body(patch).Do(ctx).Error()
}

// holders are the nodes that an EgressIP's status names.
func (c *cluster) holders(ctx context.Context, name string) ([]string, error) {
	e := &v1.EgressIP{}
	err := c.kube.EgressIP.Get().Resource("egressips").Name(name).Do(ctx).Into(e)
	var out []string
	for _, i := range e.Status.Items {
		out = append(out, i.Node)
	}
	return out, err
}

// calm is nil if all nodes are Ready with an agent of this boot, and all EgressIPs too.
func (c *cluster) calm(ctx context.Context) error {
	for name := range egressIPs {
		e := &v1.EgressIP{}
		if err := c.kube.EgressIP.Get().Resource("egressips").Name(name).Do(ctx).Into(e); err != nil {
			return err
		}
		if !isReady(e) {
			return fmt.Errorf("EgressIP %s of generation %d is on %s: %+v", name, e.Generation, e.Status.AssignedNodes, e.Status.Conditions)
		}
	}
	for _, n := range c.Nodes() {
		if err := c.nodeCalm(ctx, n.Name); err != nil {
			return err
		}
	}
	return nil
}

func isReady(e *v1.EgressIP) bool {
	c := meta.FindStatusCondition(e.Status.Conditions, v1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == e.Generation &&
		len(e.Status.Items) == len(e.Spec.EgressIPs)
}

func (c *cluster) nodeCalm(ctx context.Context, name string) error {
	n, err := c.core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	e := &egretv1.EgressNode{}
	if err := c.kube.Egret.Get().Resource("egressnodes").Name(name).Do(ctx).Into(e); err != nil {
		return err
	}
	if !kube.Node(n).Ready || e.Status.BootID != n.Status.NodeInfo.BootID || len(e.Status.Problems) > 0 {
		return fmt.Errorf("node %s: Ready %v, booted as %s, its agent reports of %s problems %q",
			name, kube.Node(n).Ready, n.Status.NodeInfo.BootID, e.Status.BootID, e.Status.Problems)
	}
	return nil
}

// until asks again and again until the answer is nil; after a while the last answer is the error.
func until(ctx context.Context, patience time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
