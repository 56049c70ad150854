package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

const (
	mergePatch  = types.MergePatchType
	podPort     = 8080
	keepPort    = 9998 // of a host outside, for connections that are kept
	podsTimeout = 60 * time.Second
)

// namespace is a test's own namespace and the pods in it.
type namespace struct {
	t    *testing.T
	c    *cluster
	name string
	ips  map[string][]netip.Addr // of pods
	at   map[string]string       // node of pods
}

// pod is what a test asks for.
type pod struct {
	name     string
	node     sandbox.Member
	labels   map[string]string
	sends    bool // to all hosts outside, all the time
	keeps    []keeps
	hostPort int32
	inHost   bool // in its host's network
}

// namespace makes one for a test, named after it; it goes when the test ends.
func (c *cluster) namespace(t *testing.T, labels map[string]string) *namespace {
	t.Helper()
	name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(t.Name(), "Test"), "/", "-"))
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-", Labels: labels}}
	o, err := c.api.CoreV1().Namespaces().Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.api.CoreV1().Namespaces().Delete(context.Background(), o.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return &namespace{t: t, c: c, name: o.Name, ips: map[string][]netip.Addr{}, at: map[string]string{}}
}

// runs creates pods and returns when all are Ready and their servers answer: a container has started some time before
// the program in it listens.
func (n *namespace) runs(pods ...pod) {
	n.t.Helper()
	n.creates(pods...)
	n.awaits(pods...)
}

func (n *namespace) creates(pods ...pod) {
	n.t.Helper()
	for _, p := range pods {
		if _, err := n.c.api.CoreV1().Pods(n.name).Create(n.t.Context(), n.object(p),
			metav1.CreateOptions{}); err != nil {
			n.t.Fatal(err)
		}
	}
}

// awaits returns when pods that were created are Ready and their servers answer.
func (n *namespace) awaits(pods ...pod) {
	n.t.Helper()
	for _, p := range pods {
		within(n.t, podsTimeout, func() error { // its status may have the address of before its node's loss
			if err := n.learn(p.name); err != nil {
				return err
			}
			return n.answers(p)
		})
	}
}

// deletes returns when a pod is gone.
func (n *namespace) deletes(name string) {
	n.t.Helper()
	pods := n.c.api.CoreV1().Pods(n.name)
	must(n.t, pods.Delete(n.t.Context(), name, metav1.DeleteOptions{}))
	within(n.t, podsTimeout, func() error {
		if _, err := pods.Get(n.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s/%s is still there: %v", n.name, name, err)
		}
		return nil
	})
	delete(n.ips, name)
	delete(n.at, name)
}

// answers is nil when a pod's server answers its own node.
func (n *namespace) answers(p pod) error {
	_, err := fetch(n.t.Context(), clientIn(p.node.Name), url(n.ips[p.name][0], podPort, "/"))
	return err
}

// object runs the Kubernetes test server, and a sender beside it if asked.
func (n *namespace) object(p pod) *corev1.Pod {
	command := fmt.Sprintf("mkdir /uploads; exec /agnhost netexec --http-port=%d", podPort)
	if p.sends {
		command = traffic.Sender + " " + n.name + "/" + p.name + " " + strings.Join(traffic.Sinks(n.c.Cluster), " ") +
			" & " + command
	}
	for _, k := range p.keeps {
		command = fmt.Sprintf("%s keep %d %s %s & %s", traffic.Sender, k.count, netip.AddrPortFrom(k.to, keepPort),
			k.form(), command)
	}
	var none int64
	container := corev1.Container{
		Name: "main", Image: "localhost/agnhost:latest", ImagePullPolicy: corev1.PullNever,
		Command:      []string{"/bin/sh", "-c", command},
		VolumeMounts: []corev1.VolumeMount{{Name: "tools", MountPath: traffic.Dir, ReadOnly: true}},
	}
	if p.hostPort != 0 {
		container.Ports = []corev1.ContainerPort{{ContainerPort: podPort, HostPort: p.hostPort}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: p.labels},
		Spec: corev1.PodSpec{
			NodeName: p.node.Name, HostNetwork: p.inHost, Containers: []corev1.Container{container},
			TerminationGracePeriodSeconds: &none,
			// stays when its node is away
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Volumes: []corev1.Volume{{Name: "tools", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: traffic.Dir}}}},
		},
	}
}

// learn notes a pod's addresses; the error says that it is not Ready.
func (n *namespace) learn(name string) error {
	p, err := n.c.api.CoreV1().Pods(n.name).Get(n.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if !ready || len(p.Status.PodIPs) != len(n.c.nodes[0].IPs) {
		return fmt.Errorf("pod %s/%s on %s is not Ready: %s %s", n.name, name, p.Spec.NodeName, p.Status.Phase,
			n.c.eventsOf(p.UID))
	}
	n.ips[name], n.at[name] = nil, p.Spec.NodeName
	for _, ip := range p.Status.PodIPs {
		n.ips[name] = append(n.ips[name], netip.MustParseAddr(ip.IP))
	}
	return nil
}

// eventsOf are an object's Events, for messages and to look at.
func (c *cluster) eventsOf(uid types.UID) []string {
	list, err := c.api.EventsV1().Events("").List(context.Background(),
		metav1.ListOptions{FieldSelector: "regarding.uid=" + string(uid)})
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Type+" "+e.Reason+" "+e.Note)
	}
	return out
}

// label sets labels of a pod; null, as in a merge patch, takes one away.
func (n *namespace) label(pod string, labels map[string]string) {
	n.t.Helper()
	if _, err := n.c.api.CoreV1().Pods(n.name).Patch(n.t.Context(), pod, mergePatch, labelPatch(labels),
		metav1.PatchOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// labelSelf sets labels of the namespace.
func (n *namespace) labelSelf(labels map[string]string) {
	n.t.Helper()
	if _, err := n.c.api.CoreV1().Namespaces().Patch(n.t.Context(), n.name, mergePatch, labelPatch(labels),
		metav1.PatchOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

const absent = "\x00"

func labelPatch(labels map[string]string) []byte {
	var pairs []string
	for k, v := range maps.All(labels) {
		value := fmt.Sprintf("%q", v)
		if v == absent {
			value = "null"
		}
		pairs = append(pairs, fmt.Sprintf("%q:%s", k, value))
	}
	return []byte(`{"metadata":{"labels":{` + strings.Join(pairs, ",") + `}}}`)
}

// exec runs a shell script in a pod and returns its standard output.
func (n *namespace) exec(ctx context.Context, pod, script string) (string, error) {
	request := n.c.api.CoreV1().RESTClient().Post().Resource("pods").Namespace(n.name).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"/bin/sh", "-c", script}, Stdout: true, Stderr: true},
			scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(n.c.config, "GET", request.URL().String())
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		err = fmt.Errorf("in pod %s/%s: %s: %w\n%s%s", n.name, pod, script, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), err
}

// in runs a shell script in a pod; it must succeed.
func (n *namespace) in(pod, script string) string {
	n.t.Helper()
	out, err := n.exec(n.t.Context(), pod, script)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// url of a port at an address.
func url(ip netip.Addr, port int, path string) string {
	return "http://" + net.JoinHostPort(ip.String(), fmt.Sprint(port)) + path
}
