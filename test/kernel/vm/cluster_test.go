package vm

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
	"github.com/egret-net/egret/test/kernel/boot"
)

const (
	apiPort = 6443
	// soon bounds what waits for a condition, in an emulated machine on a busy one.
	soon = 5 * time.Minute
)

// cluster is a sandbox of two nodes without Kubernetes, and what is recorded of its Kubernetes.
type cluster struct {
	*sandbox.Cluster
	t     *testing.T
	api   *api
	nodes []sandbox.Member
}

// start brings up the nodes with OVS and OVN, the hosts outside, and the agents, which begin when each node's links
// have been prepared.
func start(t *testing.T, mode sandbox.GatewayMode, prepare func(*cluster, sandbox.Member)) *cluster {
	t.Helper()
	o := options(t)
	o.GatewayMode = mode
	c, err := sandbox.Up(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandbox.Down(o); err != nil {
			t.Error(err)
		}
	})
	k := &cluster{Cluster: c, t: t, api: newAPI(), nodes: c.Nodes()}
	t.Cleanup(k.logs)
	k.serve()
	for i, n := range k.nodes {
		k.eventually("boot of "+n.Name, func(ctx context.Context) error {
			_, err := k.ExecIn(ctx, n.Name, "ls", "/etc/egret", "/run/ovn/ovnsb_db.sock")
			return err
		})
		prepare(k, n)
		k.record(i, n)
		k.in(n.Name, "sh", "-c", "printf '%s' '"+kubeconfig(k.gateway())+"' > /etc/egret/node.kubeconfig")
	}
	return k
}

func options(t *testing.T) sandbox.Options {
	t.Helper()
	if os.Getenv("EGRET_KERNEL") != "1" {
		t.Skip("needs the kernel of a virtual machine: run make test-kernel")
	}
	o := sandbox.Defaults()
	o.Name, o.Nodes, o.ExternalHosts, o.SecondaryNetworks, o.IPFamily, o.NoKubernetes = "k", 2, 1, 1, sandbox.Dual, true
	o.BinDir, o.CacheDir = boot.Share+"/bin", boot.Cache
	return o
}

// serve answers as the API server, at the gateway of the nodes' network.
func (c *cluster) serve() {
	c.t.Helper()
	var l net.Listener
	err := inNetns(c.FabricNetns(), func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(c.gateway(), apiPort).String())
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	server := &http.Server{Handler: c.api, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	c.t.Cleanup(func() { server.Close() })
}

func (c *cluster) gateway() netip.Addr {
	return netip.PrefixFrom(c.nodes[0].IPs[0], 24).Masked().Addr().Next()
}

func kubeconfig(api netip.Addr) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],`+
		`"clusters":[{"name":"x","cluster":{"server":"http://%s"}}],"users":[{"name":"x","user":{}}]}`,
		netip.AddrPortFrom(api, apiPort))
}

// record writes a node as its kubelet and egret-controller would.
func (c *cluster) record(i int, m sandbox.Member) {
	c.t.Helper()
	config := world.Config{JoinSubnets: world.DefaultJoinSubnets(), TransitSubnets: world.DefaultTransitSubnets()}
	id := i + 2
	subnets := []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.244.%d.0/24", i)),
		netip.MustParsePrefix(fmt.Sprintf("fd00:10:244:%d::/64", i))}
	join := []netip.Prefix{config.Join(id, world.V4), config.Join(id, world.V6)}
	transit := []netip.Prefix{config.Transit(id, world.V4), config.Transit(id, world.V6)}
	n := corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, UID: types.UID("uid-" + m.Name),
			Labels: map[string]string{"k8s.ovn.org/egress-assignable": ""},
			Annotations: kube.AllocationAnnotations(world.Allocation{ID: id, Subnets: subnets, Join: join,
				Transit: transit, Further: map[string]world.NodeNetwork{blueName: {Subnets: blueSubnets(i)}}}),
		},
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, ip := range m.IPs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP,
			Address: ip.String()})
	}
	n.Status.NodeInfo.BootID = strings.TrimSpace(c.in(m.Name, "cat", "/proc/sys/kernel/random/boot_id"))
	c.api.put(c.t, "/api/v1/nodes/"+m.Name, n)
}

// serveIn answers every request in a network namespace with the client's address:port.
func serveIn(t *testing.T, namespace string, at netip.AddrPort) {
	t.Helper()
	var l net.Listener
	if err := inNetns(namespace, func() (err error) {
		l, err = net.Listen("tcp", at.String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	answer := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) }
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
}

// in runs a command in a node, a host outside or the fabric.
func (c *cluster) in(who string, cmd ...string) string {
	c.t.Helper()
	out, err := c.ExecIn(c.t.Context(), who, cmd...)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(out)
}

// eventually tries until there is no error.
func (c *cluster) eventually(what string, try func(context.Context) error) {
	c.t.Helper()
	eventually(c.t, what, try)
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, soon, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// logs shows the last lines of what the nodes' agents and switches said, when the test has failed.
func (c *cluster) logs() {
	if !c.t.Failed() {
		return
	}
	files, _ := filepath.Glob(filepath.Join(c.Options().StateDir, c.Options().Name, "nodes/*/log/egret/*.log"))
	for _, f := range files {
		content, _ := os.ReadFile(f)
		if said := notable(content, 12); len(said) > 0 {
			c.t.Logf("%s:\n%s", f, said)
		}
	}
}

// notable are the last n lines that are not of level info, nor OVS' complaints of a slow machine.
func notable(content []byte, n int) []byte {
	lines := slices.DeleteFunc(bytes.Split(bytes.TrimSpace(content), []byte("\n")), func(l []byte) bool {
		return bytes.Contains(l, []byte("|INFO|")) || bytes.Contains(l, []byte("|timeval")) ||
			bytes.Contains(l, []byte("level=info"))
	})
	return bytes.Join(lines[max(0, len(lines)-n):], []byte("\n"))
}

// inNetns runs do on a thread of its own inside a named network namespace; sockets that do opens stay in it. The thread
// ends with it.
func inNetns(name string, do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		ns, err := netns.GetFromName(name)
		if err != nil {
			result <- err
			return
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			result <- err
			return
		}
		result <- do()
	}()
	return <-result
}
