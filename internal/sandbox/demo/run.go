package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

const (
	minNodes    = 3 // two that host an address each, and one for an address to move to
	exampleName = "egressip-prod"
	patience    = 90 * time.Second // for pods and conditions; a slow machine takes a quarter of it
	settleTime  = 2 * time.Second  // after which a controller that would move something has done so
)

// demo is one run.
type demo struct {
	cluster *sandbox.Cluster
	out     io.Writer
	pods    []corev1.Pod // that connect
	wrong   int          // lines
}

// Run brings the sandbox up, deploys pods, applies the example EgressIP, shows which sources servers see, moves an
// address to another node and shows them again. A namespace with its own network follows. It errs if anything does not
// come about, or if one line is wrong.
func Run(ctx context.Context, o sandbox.Options, out io.Writer) error {
	if o.Nodes < minNodes || o.ExternalHosts < 1 {
		return fmt.Errorf("the demo needs %d nodes and an external host", minNodes)
	}
	cluster, err := sandbox.Up(ctx, o, out)
	if err != nil {
		return err
	}
	d := &demo{cluster: cluster, out: out}
	err = d.showAll(ctx)
	if err == nil && d.wrong > 0 {
		err = fmt.Errorf("%d of the demo's lines were wrong", d.wrong)
	}
	if err == nil {
		d.printLine("\nEvery line was right.")
	}
	d.lookAround()
	return err
}

func (d *demo) printLine(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// showAll tells the story. The first node hosts no address in the beginning, so that pods on and off egress nodes are
// seen.
func (d *demo) showAll(ctx context.Context) error {
	nodes := d.cluster.Nodes()
	standby, leaving := nodes[0].Name, nodes[1].Name
	for _, part := range []struct {
		title string
		show  func() error
	}{
		{"Pods on every node, two egress nodes, and the EgressIP", func() error { return d.setUp(ctx) }},
		{"What the servers see", func() error { return d.showSources(ctx) }},
		{"Why", func() error { return d.showExplanation(ctx) }},
		{"One more egress node: nothing moves", func() error { return d.labelAndJudge(ctx, standby) }},
		{"Unlabel egress node " + leaving + ": its address moves to " + standby,
			func() error { return d.moveAway(ctx, leaving, standby, nodes[2].Name) }},
		{"What the servers see after the move", func() error { return d.showSources(ctx) }},
		{"Label " + leaving + " again: nothing moves", func() error { return d.labelAndJudge(ctx, leaving) }},
		{"A namespace with a network and an egress IP of its own", func() error { return d.showNetwork(ctx) }},
	} {
		d.printLine("\n# %s\n", part.title)
		if err := part.show(); err != nil {
			return fmt.Errorf("%s: %w", part.title, err)
		}
	}
	return nil
}

// setUp deploys the pods, labels exactly the second and the third node, applies the EgressIP and waits for all of it.
func (d *demo) setUp(ctx context.Context) error {
	example, err := readManifest("egressip", d.cluster.Options().IPFamily)
	if err != nil {
		return err
	}
	if err := d.applyObjects(ctx, "pods"); err != nil {
		return err
	}
	var egress []string
	for i, n := range d.cluster.Nodes() {
		if i == 1 || i == 2 {
			egress = append(egress, n.Name)
		} else if _, err := d.runKubectl(ctx, "", "label", "node", n.Name, v1.LabelEgressAssignable+"-"); err != nil {
			return err
		}
	}
	if err := d.showCommand(ctx, "", labelArgs(egress...)...); err != nil {
		return err
	}
	d.printLine("%s", example)
	if err := d.showCommand(ctx, example, applyArgs...); err != nil {
		return err
	}
	if err := d.awaitPods(ctx); err != nil {
		return err
	}
	if _, err := d.awaitReady(ctx, exampleName, egress...); err != nil {
		return err
	}
	return d.showPlaces(ctx)
}

// applyObjects applies a file of objects without showing it.
func (d *demo) applyObjects(ctx context.Context, name string) error {
	text, err := readManifest(name, d.cluster.Options().IPFamily)
	if err == nil {
		_, err = d.runKubectl(ctx, text, applyArgs...)
	}
	return err
}

var applyArgs = []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}

// labelArgs make nodes egress nodes.
func labelArgs(nodes ...string) []string {
	return append(append([]string{"label", "--overwrite", "node"}, nodes...), v1.LabelEgressAssignable+"=")
}

func (d *demo) showPlaces(ctx context.Context) error {
	d.printLine("")
	return errors.Join(d.showCommand(ctx, "", "get", "eip"), d.showCommand(ctx, "", "get", "egn"))
}

// awaitPods waits until every node has its pods, and lists those that connect.
func (d *demo) awaitPods(ctx context.Context) (err error) {
	for _, workload := range []string{"prod daemonset/web", "prod daemonset/db", "prod daemonset/on-node",
		"dev deployment/web"} {
		if err := d.awaitRollout(ctx, workload); err != nil {
			return err
		}
	}
	d.pods, err = d.listPods(ctx, "app in (web, db)")
	return err
}

func (d *demo) awaitRollout(ctx context.Context, workload string) error {
	namespace, name, _ := strings.Cut(workload, " ")
	_, err := d.runKubectl(ctx, "", "rollout", "status", "-n", namespace, name, "--timeout="+patience.String())
	return err
}

// listPods returns the running pods that labels select, in the order of sortKey.
func (d *demo) listPods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	text, err := d.runKubectl(ctx, "", "get", "pods", "-A", "-l", selector, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return pods, nil
}

// sortKey puts selected pods first, and pods of one kind by their nodes.
func sortKey(p corev1.Pod) string {
	return fmt.Sprint(!isSelected(p), p.Namespace, p.Labels["app"], p.Spec.NodeName)
}

func isSelected(p corev1.Pod) bool { return p.Namespace == "prod" && p.Labels["app"] == "web" }

// awaitReady waits until an EgressIP is Ready with all addresses on these nodes, and returns it.
func (d *demo) awaitReady(ctx context.Context, name string, nodes ...string) (*v1.EgressIP, error) {
	for deadline := time.Now().Add(patience); ; {
		e, err := d.readEgressIP(ctx, name)
		if err == nil {
			err = readyOn(e, nodes)
		}
		if err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return e, err
		}
		time.Sleep(20 * time.Millisecond) // kubectl itself takes longer
	}
}

func (d *demo) readEgressIP(ctx context.Context, name string) (*v1.EgressIP, error) {
	text, err := d.runKubectl(ctx, "", "get", "eip", name, "-o", "json")
	if err != nil {
		return nil, err
	}
	e := &v1.EgressIP{}
	return e, json.Unmarshal(text, e)
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
			return fmt.Errorf("%s is on %s, which is not an egress node", i.EgressIP, i.Node)
		}
	}
	return nil
}

// labelAndJudge makes a node an egress node and judges that every address stays.
func (d *demo) labelAndJudge(ctx context.Context, node string) error {
	before, err := d.readEgressIP(ctx, exampleName)
	if err != nil {
		return err
	}
	if err := d.showCommand(ctx, "", labelArgs(node)...); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(settleTime):
	}
	after, err := d.readEgressIP(ctx, exampleName)
	if err != nil {
		return err
	}
	if !slices.Equal(after.Status.Items, before.Status.Items) {
		d.wrong++
		d.printLine("WRONG: addresses moved; the status was %+v", before.Status.Items)
	}
	return d.showPlaces(ctx)
}

// moveAway unlabels a node while the selected pods connect to the first host all the time.
func (d *demo) moveAway(ctx context.Context, leaving string, staying ...string) error {
	e, err := d.readEgressIP(ctx, exampleName)
	if err != nil {
		return err
	}
	var rows []row
	stream, streamCtx := errgroup.WithContext(ctx)
	stream.Go(func() (err error) { rows, err = d.streamConnections(streamCtx, e); return err })
	time.Sleep(time.Second) // connections without a move
	if err := d.showCommand(ctx, "", "label", "node", leaving, v1.LabelEgressAssignable+"-"); err != nil {
		return err
	}
	began := time.Now()
	_, ready := d.awaitReady(ctx, exampleName, staying...)
	took := time.Since(began)
	if err := errors.Join(ready, stream.Wait()); err != nil {
		return err
	}
	d.printLine("The EgressIP is Ready again after %d ms. Connections of selected pods in the meantime:\n",
		took.Milliseconds())
	d.judgeRows(rows)
	return d.showPlaces(ctx)
}

// showExplanation prints what kubectl egret explain says of the first selected pod.
func (d *demo) showExplanation(ctx context.Context) error {
	pod := d.pods[0]
	return d.showCommand(ctx, "", "egret", "explain", pod.Namespace+"/"+pod.Name,
		d.cluster.ExternalHosts()[0].IPs[0].String(), fmt.Sprint("--port=", serverPort))
}

// showCommand prints a command of kubectl, runs it, and prints what it says.
func (d *demo) showCommand(ctx context.Context, stdin string, args ...string) error {
	d.printLine("$ kubectl %s", strings.Join(args, " "))
	out, err := d.runKubectl(ctx, stdin, args...)
	d.printLine("%s", bytes.TrimSpace(out))
	return err
}

// runKubectl returns a command's output, also that of one that failed.
func (d *demo) runKubectl(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := d.cluster.Kubectl(ctx, args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return out, err
}

func (d *demo) lookAround() {
	nodes, command := d.cluster.Nodes(), "bin/egret-sandbox"
	if name := d.cluster.Options().Name; name != sandbox.Defaults().Name {
		command += " --name " + name
	}
	d.printLine("\n# The cluster stays up. Look around:\n")
	for _, args := range []string{
		"kubectl describe eip " + exampleName,
		"kubectl get pods -A -o wide",
		"kubectl describe udn -n shop blue",
		"exec " + nodes[0].Name + " -- ovn-nbctl lr-policy-list ovn_cluster_router",
		"exec " + nodes[0].Name + " -- tail -n 50 /var/log/egret/egret-node.log",
		fmt.Sprintf("exec %s -- tcpdump -ni eth0 tcp port %d", d.cluster.ExternalHosts()[0].Name, serverPort),
		"power-off " + nodes[2].Name,
		"down",
	} {
		d.printLine("  %s %s", command, args)
	}
}
