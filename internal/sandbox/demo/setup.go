package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1 "github.com/egret-net/egret/api/v1"
)

const (
	exampleName     = "egressip-prod"
	assignableLabel = "k8s.ovn.org/egress-assignable"
	patience        = 90 * time.Second // for pods and conditions; a slow machine takes a quarter of it
)

// setUp deploys the pods, labels exactly the egress nodes, applies the EgressIP and waits for all of it.
func (d *demo) setUp(ctx context.Context, egress []string) error {
	manifests, err := podManifests()
	if err != nil {
		return err
	}
	if err := d.applyManifests(ctx, manifests); err != nil {
		return err
	}
	for _, n := range d.cluster.Nodes() {
		if err := d.labelNode(ctx, n.Name, slices.Contains(egress, n.Name)); err != nil {
			return err
		}
	}
	e, err := egressIP(d.cluster.Options().IPFamily)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(e)
	if err != nil {
		return err
	}
	if err := d.applyManifests(ctx, string(text)); err != nil {
		return err
	}
	for _, n := range egress {
		d.screen.printLine("kubectl label node %s %s=\"\"", n, assignableLabel)
	}
	d.screen.printLine("\n%s", strings.TrimSpace(string(text)))
	if _, err := d.awaitReady(ctx, egress); err != nil {
		return err
	}
	return d.awaitCheck(ctx, "pods", d.podsReady)
}

func (d *demo) applyManifests(ctx context.Context, manifests string) error {
	args := d.cluster.Kubectl("apply", "--server-side", "--force-conflicts", "-f", "-")
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.Kubeconfig())
	cmd.Stdin = strings.NewReader(manifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the demo's objects: %w\n%s", err, out)
	}
	return nil
}

// labelNode makes a node an egress node, or makes it none.
func (d *demo) labelNode(ctx context.Context, node string, egress bool) error {
	value := "null"
	if egress {
		value = `""`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, assignableLabel, value)
	_, err := d.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("label node %s: %w", node, err)
	}
	return nil
}

func (d *demo) egressIP(ctx context.Context) (*v1.EgressIP, error) {
	e := &v1.EgressIP{}
	err := d.egressIPs.Get().Resource("egressips").Name(exampleName).Do(ctx).Into(e)
	return e, err
}

// egressAddresses are the example's egress IPs.
func (d *demo) egressAddresses(ctx context.Context) ([]netip.Addr, error) {
	e, err := d.egressIP(ctx)
	if err != nil {
		return nil, err
	}
	var all []netip.Addr
	for _, text := range e.Spec.EgressIPs {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		all = append(all, ip)
	}
	return all, nil
}

// awaitReady waits until the example is Ready with all addresses on these nodes, and returns it.
func (d *demo) awaitReady(ctx context.Context, nodes []string) (*v1.EgressIP, error) {
	var e *v1.EgressIP
	err := d.awaitCheck(ctx, "EgressIP "+exampleName, func(ctx context.Context) (err error) {
		if e, err = d.egressIP(ctx); err != nil {
			return err
		}
		return readyOn(e, nodes)
	})
	return e, err
}

func readyOn(e *v1.EgressIP, nodes []string) error {
	c := meta.FindStatusCondition(e.Status.Conditions, v1.ConditionReady)
	switch {
	case c == nil || c.ObservedGeneration != e.Generation:
		return errors.New("the controller has not looked at it yet")
	case c.Status != metav1.ConditionTrue:
		return fmt.Errorf("%s: %s", c.Reason, c.Message)
	}
	for _, i := range e.Status.Items {
		if !slices.Contains(nodes, i.Node) {
			return fmt.Errorf("%s is still on %s, which is no egress node", i.EgressIP, i.Node)
		}
	}
	return nil
}

// awaitCheck polls until check returns nil. Its error holds the last one of check.
func (d *demo) awaitCheck(ctx context.Context, what string, check func(context.Context) error) error {
	deadline := time.Now().Add(patience)
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not ready after %s: %w", what, patience, err)
		}
		if err := sleepUnlessDone(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// podsReady is nil when every node has its pods and they are ready.
func (d *demo) podsReady(ctx context.Context) error {
	sets, err := d.client.AppsV1().DaemonSets("prod").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, s := range sets.Items {
		if !isComplete(s, len(d.cluster.Nodes())) {
			return fmt.Errorf("DaemonSet prod/%s: %d of %d pods ready", s.Name, s.Status.NumberReady,
				len(d.cluster.Nodes()))
		}
	}
	dev, err := d.client.AppsV1().Deployments("dev").Get(ctx, "web", metav1.GetOptions{})
	if err == nil && dev.Status.ReadyReplicas != 1 {
		err = errors.New("deployment dev/web has no ready pod")
	}
	return err
}

func isComplete(s appsv1.DaemonSet, nodes int) bool {
	st := s.Status
	return st.ObservedGeneration == s.Generation && int(st.NumberReady) == nodes &&
		int(st.UpdatedNumberScheduled) == nodes
}

// pods are those of the demo that run.
type pods struct {
	served   []corev1.Pod // prod/web: the EgressIP selects them
	unserved []corev1.Pod // prod/db by its own labels, dev/web by its namespace's
}

func (d *demo) listPods(ctx context.Context) (pods, error) {
	var p pods
	for _, from := range []struct {
		namespace, app string
		into           *[]corev1.Pod
	}{{"prod", "web", &p.served}, {"prod", "db", &p.unserved}, {"dev", "web", &p.unserved}} {
		list, err := d.client.CoreV1().Pods(from.namespace).List(ctx,
			metav1.ListOptions{LabelSelector: "app=" + from.app})
		if err != nil {
			return pods{}, err
		}
		running := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
			return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning
		})
		slices.SortFunc(running, func(a, b corev1.Pod) int { return strings.Compare(a.Spec.NodeName, b.Spec.NodeName) })
		*from.into = append(*from.into, running...)
	}
	return p, nil
}
