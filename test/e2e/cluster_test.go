package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/oracle"
	"github.com/egret-net/egret/test/traffic"
)

const upTimeout = 5 * time.Minute

// cluster is the sandbox and what is needed to look at it.
type cluster struct {
	*sandbox.Cluster
	config *rest.Config
	api    *kubernetes.Clientset
	kube   *kube.Clients
	nodes  []sandbox.Member
	hosts  []sandbox.Member
	// healthPort is that of the agents' health service; 0: nodes are probed at TCP port 9.
	healthPort int
	right      *oracle.Oracle           // of what pods' packets may leave with
	listens    *testing.T               // the test that tells who was heard if it fails
	drops      map[string]harness.Drops // of the switches, at the end of the previous test
}

func start(ctx context.Context, o sandbox.Options) (*cluster, error) {
	s, err := sandbox.Up(ctx, o, os.Stdout)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: s, nodes: s.Nodes(), hosts: s.ExternalHosts(), healthPort: o.HealthcheckPort}
	if c.config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig()); err != nil {
		return nil, err
	}
	c.config.QPS = -1 // no limit
	if c.api, err = kubernetes.NewForConfig(c.config); err != nil {
		return nil, err
	}
	if c.kube, err = kube.NewClients(c.config); err != nil {
		return nil, err
	}
	if c.right, err = oracle.Follow(context.Background(), c.kube); err != nil {
		return nil, err
	}
	return c, traffic.Install(ctx, s)
}

// inOneMode skips, in all runs but those of shared gateway mode, a test of what does not depend on that mode.
func (c *cluster) inOneMode(t *testing.T) {
	t.Helper()
	if mode := c.Options().GatewayMode; mode != sandbox.Shared {
		t.Skipf("it is the same in gateway mode %s as in gateway mode %s, where it is tried", mode, sandbox.Shared)
	}
}

// alikeInBoth is for a test of what the API and the agents do, which gateway modes do not differ in: both modes are
// tried by the full matrix alone.
func (c *cluster) alikeInBoth(t *testing.T) {
	t.Helper()
	if !fullMatrix() {
		c.inOneMode(t)
	}
}

// inFullMatrix skips, in all runs but those of the full matrix, a test that takes long for what others try in part.
// A method, so that a test without a cluster skips for that reason first.
func (c *cluster) inFullMatrix(t *testing.T) {
	t.Helper()
	if !fullMatrix() {
		t.Skip("takes part in the full matrix only")
	}
}

// fullMatrix says whether this is a run of `make test-all`.
func fullMatrix() bool { return os.Getenv("EGRET_E2E_MATRIX") != "" }

// feed runs a command on a node or host with this standard input, and returns its standard output.
func (c *cluster) feed(ctx context.Context, who string, stdin []byte, command ...string) (string, error) {
	args, err := c.Command(who, command...)
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	run.Stdin, run.Stdout, run.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := run.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %v: %w\n%s%s", who, command, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}

// on runs a command on a node or host; it must succeed.
func (c *cluster) on(t *testing.T, who string, command ...string) string {
	t.Helper()
	out, err := c.feed(t.Context(), who, nil, command...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// number gives the addresses with this number in the primary network, in each family of the cluster: 33 is 172.18.0.33.
func (c *cluster) number(n int) []netip.Addr { return numbered(c.nodes[0].IPs, n) }

// numbered gives the addresses with this number in the networks of these.
func numbered(ips []netip.Addr, n int) []netip.Addr {
	var out []netip.Addr
	for _, ip := range ips {
		if ip.Is4() {
			b := ip.As4()
			b[3] = byte(n)
			out = append(out, netip.AddrFrom4(b))
			continue
		}
		network, _ := ip.Prefix(64)
		out = append(out, netip.MustParseAddr(fmt.Sprintf("%s%d", network.Addr(), n)))
	}
	return out
}

// labelEgress makes nodes egress nodes until the test ends.
func (c *cluster) labelEgress(t *testing.T, nodes ...sandbox.Member) {
	t.Helper()
	for _, n := range nodes {
		c.patchNode(t, n.Name, `{"metadata":{"labels":{"k8s.ovn.org/egress-assignable":""}}}`)
		t.Cleanup(func() { c.unlabelEgress(t, n) })
	}
}

func (c *cluster) unlabelEgress(t *testing.T, n sandbox.Member) {
	t.Helper()
	c.patchNode(t, n.Name, `{"metadata":{"labels":{"k8s.ovn.org/egress-assignable":null}}}`)
}

func (c *cluster) patchNode(t *testing.T, name, patch string) {
	t.Helper()
	if _, err := c.api.CoreV1().Nodes().Patch(context.Background(), name, mergePatch, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// management is a node's address on its own switch, in each family.
func (c *cluster) management(t *testing.T, node string) []netip.Addr {
	t.Helper()
	var out []netip.Addr
	for _, s := range kube.Node(c.node(t, node)).Subnets {
		out = append(out, s.Addr().Next().Next())
	}
	if len(out) == 0 {
		t.Fatalf("node %s has no subnets in annotation %s", node, v1.AnnotationNodeSubnets)
	}
	return out
}

func (c *cluster) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n, err := c.api.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func concat(lists ...[]netip.Addr) []netip.Addr {
	var all []netip.Addr
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
