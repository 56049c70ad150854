package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/probe/probetest"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/sandbox/image"
)

// patience bounds what waits for a condition.
const patience = 5 * time.Minute

var egressIP = netip.MustParseAddr("172.18.0.77")

// TestManifests applies them in the order of docs/install.md, and asks for what a pod network and an EgressIP are for;
// then once more after all but Open vSwitch has been replaced, as in an upgrade.
func TestManifests(t *testing.T) {
	l := start(t)
	l.kubectl("apply", "-f", "../../deploy")
	l.certify()
	as := l.certifyMetrics()
	l.kubectl("apply", "-f", l.adapted())
	l.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout", patience.String())
	l.rolledOut()
	l.pods()
	l.network("before")
	l.egress()
	l.leaves()
	l.unprivileged()
	l.measured(as)
	l.agentsAnswer(as)
	l.logged()

	end := l.asking(0, 1)
	l.kubectl("-n", "egret-system", "rollout", "restart", "daemonset/egret-node", "deployment/egret-controller")
	l.rolledOut()
	end()
	l.network("after")
	l.leaves()
	l.noneRestarted()
	l.drained()
}

// drained: kubectl drain, and then the end of the agent's pod, on the node that hosts. The address moves before the
// pod has ended, no connection of a pod on the other node is lost, and the node may host again when it is schedulable.
func (l *lab) drained() {
	l.t.Helper()
	from, to := l.nodes[1].Name, l.nodes[0].Name
	host := func() string { return l.kubectl("get", "egressip", "web", "-o", "jsonpath={.status.items[*].node}") }
	cordon := func() string {
		return l.kubectl("get", "node", from, "-o", `jsonpath={.metadata.annotations.egret\.k8s\.ovn\.org/egress-cordon}`)
	}
	l.kubectl("label", "node", to, "k8s.ovn.org/egress-assignable=")
	if have := host(); have != from {
		l.t.Fatalf("%s hosts, want %s", have, from)
	}
	end := l.asking(0)
	l.kubectl("drain", from, "--ignore-daemonsets", "--force", "--pod-selector=app=web")
	l.kubectl("-n", "egret-system", "delete", "pod", "-l", "app=egret-node", "--field-selector", "spec.nodeName="+from)
	if have := host(); have != to {
		l.t.Errorf("when the agent's pod of the drained node is gone, %s hosts, want %s", have, to)
	}
	l.rolledOut()
	end()
	if have := cordon(); !strings.HasSuffix(have, ".drain") {
		l.t.Errorf("while it is drained the node has the cordon %q", have)
	}
	l.kubectl("uncordon", from)
	l.eventually("the node may host again", func() error {
		if have := cordon(); have != "" {
			return fmt.Errorf("cordon %q", have)
		}
		return nil
	})
}

const (
	// apiServer is the address of a sandbox's API server.
	apiServer  = "172.18.0.250"
	healthPort = "9107"
	healthName = "egret"
)

// certify makes the Secret with which agents and controllers speak TLS.
func (l *lab) certify() {
	l.t.Helper()
	files := probetest.NewAuthority(l.t, "manifests").Write(l.t.TempDir(), healthName)
	l.kubectl("-n", "egret-system", "create", "secret", "generic", "egret-health",
		"--from-file=tls.key="+files.Key, "--from-file=tls.crt="+files.Cert, "--from-file=ca.crt="+files.CA)
}

// agentsAnswer: a controller reaches every agent over TLS, and nobody does without a certificate.
func (l *lab) agentsAnswer(as readers) {
	l.t.Helper()
	controller := netip.AddrPortFrom(l.nodes[0].IPs[0], controllerMetrics)
	l.eventually("controllers reach all egress nodes", func() error {
		out, err := scrape(l.nodes[0].Name, controller, as.prometheus)
		if err != nil {
			return err
		}
		const answers, missing = "egret_controller_probe_rtt_seconds_count ", "egret_controller_node_unreachable{"
		for line := range strings.Lines(out) {
			if line == answers+"0\n" || strings.HasPrefix(line, missing) && !strings.HasSuffix(line, " 0\n") {
				return errors.New(line)
			}
		}
		if !strings.Contains(out, answers) {
			return fmt.Errorf("no %s", answers)
		}
		return nil
	})
	subnet := l.kubectl("get", "node", l.nodes[1].Name, "-o",
		`jsonpath={.metadata.annotations.k8s\.ovn\.org/node-subnets}`)
	var subnets map[string][]netip.Prefix
	if err := json.Unmarshal([]byte(subnet), &subnets); err != nil {
		l.t.Fatalf("%s: %v", subnet, err)
	}
	at := netip.AddrPortFrom(subnets["default"][0].Masked().Addr().Next().Next(), 9107)
	out, err := l.ExecIn(l.t.Context(), l.nodes[1].Name, "curl", "-skS", "--max-time", "5", "https://"+at.String()+"/")
	if err == nil {
		l.t.Errorf("the health service speaks to somebody without a certificate: %s", out)
	}
}

// unprivileged: of Egret's pods the controllers run without rights, and the databases have no token.
func (l *lab) unprivileged() {
	l.t.Helper()
	status := l.kubectl("-n", "egret-system", "get", "pods", "-l", "app=egret-controller", "-o",
		"jsonpath={range .items[*]}{.spec.containers[0].securityContext}{.spec.securityContext}{end}")
	for _, want := range []string{`"runAsNonRoot":true`, `"readOnlyRootFilesystem":true`,
		`"allowPrivilegeEscalation":false`, `"RuntimeDefault"`} {
		if strings.Count(status, want) != 2 {
			l.t.Errorf("controllers lack %s: %s", want, status)
		}
	}
	for container, has := range map[string]bool{"nb-db": false, "agent": true} {
		_, err := l.try("-n", "egret-system", "exec", "daemonset/egret-node", "-c", container, "--", "cat",
			"/var/run/secrets/kubernetes.io/serviceaccount/token")
		if (err == nil) != has {
			l.t.Errorf("container %s has a token: %t", container, err == nil)
		}
	}
	l.kubectl("-n", "egret-system", "get", "poddisruptionbudget", "egret-controller")
}

// lab is a cluster that Egret's manifests are installed on.
type lab struct {
	*sandbox.Cluster
	t     *testing.T
	nodes []sandbox.Member
}

// start brings up two nodes without a pod network, with the product's image of this commit.
func start(t *testing.T) *lab {
	t.Helper()
	return startWith(t, options(t))
}

func startWith(t *testing.T, o sandbox.Options) *lab {
	t.Helper()
	t.Cleanup(func() {
		if err := sandbox.Down(o); err != nil {
			t.Error(err)
		}
	})
	c, err := sandbox.Up(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{c, t, c.Nodes()}
	t.Cleanup(l.look)
	l.load(".")
	return l
}

// load gives each node the product's image that is in a folder below bin.
func (l *lab) load(folder string) {
	l.t.Helper()
	file := filepath.Join(l.Options().BinDir, folder, image.Egret().File)
	if err := l.LoadImages(l.t.Context(), file, l.t.Output()); err != nil {
		l.t.Fatal(err)
	}
}

func options(t *testing.T) sandbox.Options {
	t.Helper()
	if os.Getenv("EGRET_MANIFESTS") != "1" {
		t.Skip("starts a cluster of its own: run make test-manifests as root")
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, image.Egret().File)); errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v: run make image", err)
	}
	o := sandbox.Defaults()
	o.Name, o.Nodes, o.ExternalHosts, o.CNI, o.BinDir = "manifests", 2, 1, sandbox.None, bin
	return o
}

// adapted is a copy of deploy/cluster with the values that differ here: the API server, Open vSwitch's datapath, logs
// as JSON, and the agents' health service and everybody's metrics with TLS.
func (l *lab) adapted() string {
	l.t.Helper()
	dir := l.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../deploy/cluster")); err != nil {
		l.t.Fatal(err)
	}
	file := filepath.Join(dir, "config.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	text := string(content)
	for is, becomes := range map[string]string{
		`KUBERNETES_SERVICE_HOST: ""`: "KUBERNETES_SERVICE_HOST: " + apiServer,
		"# DATAPATH: system":          "DATAPATH: " + l.Datapath(),
		`# HEALTHCHECK_PORT: "0"`:     fmt.Sprintf("HEALTHCHECK_PORT: %q", healthPort),
		`# HEALTHCHECK_TLS_KEY: ""`:   "HEALTHCHECK_TLS_KEY: /etc/egret/health/tls.key",
		`# HEALTHCHECK_TLS_CERT: ""`:  "HEALTHCHECK_TLS_CERT: /etc/egret/health/tls.crt",
		`# HEALTHCHECK_TLS_CA: ""`:    "HEALTHCHECK_TLS_CA: /etc/egret/health/ca.crt",
		`# HEALTHCHECK_TLS_NAME: ""`:  "HEALTHCHECK_TLS_NAME: " + healthName,

		`# METRICS_TLS_KEY: ""`:       "METRICS_TLS_KEY: /etc/egret/metrics/tls.key",
		`# METRICS_TLS_CERT: ""`:      "METRICS_TLS_CERT: /etc/egret/metrics/tls.crt",
		`# METRICS_TLS_CLIENT_CA: ""`: "METRICS_TLS_CLIENT_CA: /etc/egret/metrics/ca.crt",
		"# LOG_FORMAT: text":          "LOG_FORMAT: json",
	} {
		if strings.Count(text, is) != 1 {
			l.t.Fatalf("%s does not say %q", file, is)
		}
		text = strings.Replace(text, is, becomes, 1)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return dir
}

func (l *lab) rolledOut() {
	l.t.Helper()
	for _, what := range []string{"daemonset/egret-node", "deployment/egret-controller"} {
		l.kubectl("-n", "egret-system", "rollout", "status", what, "--timeout", patience.String())
	}
}

// pods are a selected one on each node.
func (l *lab) pods() {
	for i, n := range l.nodes {
		l.pod(i, n, "")
	}
	l.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout", patience.String())
}

// pod runs a selected one on a node, with fields of its container.
func (l *lab) pod(number int, node sandbox.Member, fields string) {
	l.t.Helper()
	l.apply(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-%d","namespace":"default","labels":{"app":"web"}},"spec":{"nodeName":%q,
		"terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":%q,"imagePullPolicy":"Never","args":["netexec"]%s}]}}`,
		number, node.Name, image.Agnhost().Name, fields))
}

// network: pods reach each other and the API server's ClusterIP.
func (l *lab) network(when string) {
	l.t.Helper()
	ips := strings.Fields(l.kubectl("get", "pods", "web-0", "web-1", "-o", "jsonpath={.items[*].status.podIP}"))
	for i := range l.nodes {
		l.isSeenAs(i, "http://"+ips[1-i]+":8080/clientip", ips[i])
		l.eventually(fmt.Sprintf("pod %d to the API server's ClusterIP, %s", i, when), func() error {
			_, err := l.fetch(i, "https://10.96.0.1/version")
			return err
		})
	}
}

// egress has the pods leave by the last node, with the egress IP.
func (l *lab) egress() {
	l.t.Helper()
	l.apply(fmt.Sprintf(`{"apiVersion":"k8s.ovn.org/v1","kind":"EgressIP","metadata":{"name":"web"},"spec":{"egressIPs":[%q],
		"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"web"}}}}`, egressIP))
	l.kubectl("label", "node", l.nodes[len(l.nodes)-1].Name, "k8s.ovn.org/egress-assignable=")
}

// leaves says that every pod is seen outside with the egress IP.
func (l *lab) leaves() {
	l.t.Helper()
	l.kubectl("wait", "--for=condition=Ready", "egressip/web", "--timeout", patience.String())
	for i := range l.nodes {
		l.isSeenAs(i, l.outside(), egressIP.String())
	}
}

// isSeenAs: a pod is answered, and has that source.
func (l *lab) isSeenAs(pod int, url, source string) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("pod %d to %s", pod, url), func() error {
		out, err := l.fetch(pod, url)
		if err == nil && !strings.HasPrefix(out, source+":") {
			err = fmt.Errorf("seen as %q, want %s", out, source)
		}
		return err
	})
}

func (l *lab) outside() string {
	return "http://" + netip.AddrPortFrom(l.ExternalHosts()[0].IPs[0], sandbox.ClientIPPort).String() + "/clientip"
}

func isEgressIP(client string) bool { return strings.HasPrefix(client, egressIP.String()+":") }

// asking has these pods connect to a host outside all the time until end. None may be seen with another source, nor
// fail: what Egret has set up stays in place while its pods are replaced.
func (l *lab) asking(pods ...int) (end func()) {
	const loop = "while [ ! -e /tmp/end ]; do curl -sS --max-time 5 %s && echo || echo failed; sleep 0.1; done 2>&1"
	var all sync.WaitGroup
	for _, i := range pods {
		l.kubectl("exec", fmt.Sprint("web-", i), "--", "rm", "-f", "/tmp/end")
		all.Go(func() {
			out, err := l.try("exec", fmt.Sprint("web-", i), "--", "sh", "-c", fmt.Sprintf(loop, l.outside()))
			seen := strings.Fields(out)
			others := slices.DeleteFunc(slices.Clone(seen), isEgressIP)
			l.t.Logf("pod %d connected %d times", i, len(seen)-len(others))
			if err != nil || len(seen) == 0 || len(others) > 0 {
				l.t.Errorf("pod %d, while Egret's pods were replaced: %v, %q", i, err, others)
			}
		})
	}
	return func() {
		for _, i := range pods {
			l.kubectl("exec", fmt.Sprint("web-", i), "--", "touch", "/tmp/end")
		}
		all.Wait()
	}
}

// noneRestarted: no container of Egret's has ended by itself, all this time.
func (l *lab) noneRestarted() {
	const each = `{range .items[*]}{.metadata.name}{range .status.containerStatuses[*]} {.name}={.restartCount}{end}{"\n"}{end}`
	for line := range strings.Lines(l.kubectl("-n", "egret-system", "get", "pods", "-o", "jsonpath="+each)) {
		for _, count := range strings.Fields(line)[1:] {
			if !strings.HasSuffix(count, "=0") {
				l.t.Errorf("containers have been restarted: %s", line)
				break
			}
		}
	}
}

func (l *lab) fetch(pod int, url string) (string, error) {
	return l.try("exec", fmt.Sprint("web-", pod), "--", "curl", "-skS", "--max-time", "5", url)
}

func (l *lab) apply(object string) {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "object.json")
	if err := os.WriteFile(file, []byte(object), 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.kubectl("apply", "-f", file)
}

func (l *lab) kubectl(args ...string) string {
	l.t.Helper()
	out, err := l.try(args...)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

func (l *lab) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience+time.Minute)
	defer cancel()
	out, err := l.Kubectl(ctx, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}

// eventually tries until there is no error.
func (l *lab) eventually(what string, try func() error) {
	l.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
	}
}

// look shows what there is to see when the test has failed.
func (l *lab) look() {
	if !l.t.Failed() {
		return
	}
	for _, args := range [][]string{
		{"get", "nodes,pods,egressips", "-A", "-o", "wide"}, {"-n", "egret-system", "describe", "pods"},
		{"get", "events", "-A", "--sort-by=.metadata.creationTimestamp"},
		{"-n", "egret-system", "logs", "-l", "app in (egret-ovs,egret-node,egret-controller)", "--all-containers",
			"--prefix", "--tail=20"},
	} {
		out, err := l.try(args...)
		l.t.Logf("kubectl %s\n%s%v", strings.Join(args, " "), out, err)
	}
}
