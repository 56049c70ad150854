package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/egret-net/egret/internal/sandbox/nodeinit"
)

const (
	pollInterval = 100 * time.Millisecond
	readyTimeout = 3 * time.Minute // for nodes and DNS; a slow machine takes a quarter of it
)

// configureNodes gives the kubelets and agents their credentials, applies the manifests and waits until all is ready.
func (c *Cluster) configureNodes(ctx context.Context, p *progress) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	if err := c.waitForAPI(ctx, client); err != nil {
		return err
	}
	p.printLine("API server ready")
	var g errgroup.Group
	g.Go(func() error { return c.applyManifests(ctx, p) })
	for _, n := range c.allNodes() {
		g.Go(func() error { return c.completeNode(ctx, client, n, p) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := c.waitForDNS(ctx, client, p); err != nil {
		return err
	}
	return c.waitForMetalLB(ctx, client, p)
}

// applyManifests applies Egret's own manifests, the cluster's DNS and MetalLB.
func (c *Cluster) applyManifests(ctx context.Context, p *progress) error {
	if c.layout.options.CNI != Egret {
		return nil
	}
	egret, err := egretManifests()
	if err != nil {
		return err
	}
	all := []string{egret, agentSettings(c.layout, c.state.Datapath), dnsManifests(c.layout)}
	if err := applyManifests(ctx, c.layout, strings.Join(all, "---\n")); err != nil {
		return err
	}
	if err := c.applyMetalLB(ctx); err != nil {
		return err
	}
	p.printLine("manifests applied")
	return nil
}

// completeNode gives a node's kubelet its credentials, waits for the Node object, gives the agents theirs and waits
// until the node is Ready and has its images. A kubelet that starts before the API server is there loses seconds in its
// backoff.
func (c *Cluster) completeNode(ctx context.Context, client kubernetes.Interface, n node, p *progress) error {
	if err := issueKubelet(ctx, n); err != nil {
		return err
	}
	object, err := c.awaitRegistered(ctx, client, n)
	if err != nil {
		return err
	}
	if c.layout.options.CNI == Egret {
		// Tried again until the service accounts are applied.
		issue := func(ctx context.Context) error { return issueAgents(ctx, client, n, object) }
		if err := c.awaitCheck(ctx, "agents' tokens of "+n.name, issue); err != nil {
			return err
		}
	}
	if c.layout.options.CNI == None {
		return c.awaitCheck(ctx, "images of "+n.name, func(ctx context.Context) error { return checkImported(ctx, n) })
	}
	if err := c.awaitCheck(ctx, "node "+n.name,
		func(ctx context.Context) error { return nodeReady(ctx, client, n) }); err != nil {
		return fmt.Errorf("%w\n%s", err, c.diagnosisOf(n))
	}
	p.printLine("node %s is Ready", n.name)
	return c.awaitCheck(ctx, "images of "+n.name, func(ctx context.Context) error { return checkImported(ctx, n) })
}

func (c *Cluster) awaitRegistered(ctx context.Context, client kubernetes.Interface, n node) (*corev1.Node, error) {
	var object *corev1.Node
	err := c.awaitCheck(ctx, "kubelet of "+n.name, func(ctx context.Context) (err error) {
		object, err = client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, c.diagnosisOf(n))
	}
	return object, nil
}

func (c *Cluster) waitForAPI(ctx context.Context, client kubernetes.Interface) error {
	err := c.awaitCheck(ctx, "API server", func(ctx context.Context) error {
		if _, running := runningFrom(controlPlanePID(c.layout)); !running {
			return hopeless{errors.New("the control plane has ended")}
		}
		if _, err := client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err
		}
		// The default namespace is made by the API server after it says ready; kubectl needs none, but pods do.
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("%w; see %s", err, controlPlaneLog(c.layout))
	}
	return nil
}

func (c *Cluster) waitForDNS(ctx context.Context, client kubernetes.Interface, p *progress) error {
	if c.layout.options.CNI != Egret {
		return nil
	}
	err := c.awaitCheck(ctx, "cluster DNS", func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments("kube-system").Get(ctx, "coredns", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas == 0 {
			err = errors.New("no replica of deployment kube-system/coredns is available")
		}
		return err
	})
	if err == nil {
		p.printLine("cluster DNS ready: %s", joinTexts(c.layout.dnsIPs()))
	}
	return err
}

// hopeless is an error that waiting does not mend.
type hopeless struct{ error }

// awaitCheck polls until check returns nil, or an error that is hopeless. Its error holds the last one of check.
func (c *Cluster) awaitCheck(ctx context.Context, what string, check func(context.Context) error) error {
	deadline := time.Now().Add(readyTimeout)
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := check(try)
		cancel()
		if err == nil {
			return nil
		}
		if errors.As(err, &hopeless{}) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is not ready after %s: %w", what, readyTimeout, err)
		}
		if err := sleepUnlessDone(ctx, pollInterval); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

func nodeReady(ctx context.Context, client kubernetes.Interface, n node) error {
	object, err := client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return checkReady(object)
}

// checkReady is nil if the node is Ready and none of the taints that keep pods away from unready nodes is left.
func checkReady(object *corev1.Node) error {
	i := slices.IndexFunc(object.Status.Conditions,
		func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return errors.New("no Ready condition yet")
	}
	if c := object.Status.Conditions[i]; c.Status != corev1.ConditionTrue {
		return fmt.Errorf("%s: %s", c.Reason, c.Message)
	}
	for _, t := range object.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
			return fmt.Errorf("taint %s", t.Key)
		}
	}
	return nil
}

// checkImported is nil when all images are loaded.
func checkImported(ctx context.Context, n node) error {
	units, err := n.askInit(ctx, nodeinit.Request{Op: "list"})
	if err != nil {
		return err
	}
	for _, u := range units {
		if strings.HasPrefix(u.Name, "import-") && u.State != nodeinit.Done {
			return fmt.Errorf("%s is %s %s", u.Name, u.State, u.Note)
		}
	}
	return nil
}

// diagnosisOf tells where to look when a node does not become ready.
func (c *Cluster) diagnosisOf(n node) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	units, err := n.askInit(ctx, nodeinit.Request{Op: "list"})
	if err != nil {
		return err.Error()
	}
	text := "processes of " + n.name + ", logs in " + n.logDir() + "/egret:"
	for _, u := range units {
		text += fmt.Sprintf("\n  %-16s %-8s restarts %d %s", u.Name, u.State, u.Restarts, u.Note)
	}
	return text
}

// Client returns a client of the API server, as cluster administrator.
func (c *Cluster) Client() (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // no limit
	return kubernetes.NewForConfig(config)
}
