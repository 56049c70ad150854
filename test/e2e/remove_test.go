package e2e

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
)

// removal is a node that Egret is removed from, and the cluster's controllers, which stop meanwhile.
type removal struct {
	*testing.T
	c       *cluster
	node    sandbox.Member
	command []string
}

// TestRemove: a node that Egret is removed from is what it was before, though the command was killed several times and
// is run again, or nothing of Egret's and Open vSwitch's runs any more. It reaches the API server all the time, and
// Egret can be installed again without a boot.
func TestRemove(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	node := c.nodes[2]
	c.powerOff(t, node.Name)
	must(t, c.PowerOnBare(t.Context(), node.Name))
	before := c.recordHost(t, node)
	must(t, c.PowerOff(node.Name))
	c.powerOn(t, node.Name)
	n := c.namespace(t, nil)
	c.labelEgress(t, node)
	ips := c.number(241)
	c.egressIP(t, "removed", ips, n.itself(), metav1.LabelSelector{}).readyOn(node)
	r := c.removal(t, node)
	for i, round := range []func(){r.killedAndRunAgain, r.withoutOVS} {
		web := "web" + strconv.Itoa(i)
		n.runs(pod{name: web, node: node})
		n.from(web).to(c.outside(0)).soonArrivesAs(ips...)
		r.otherHost(before)
		r.controllers(c.StopProcess)
		r.stopAll("egret-node", "ovn-controller", "ovn-northd", "ovsdb-nb", "ovsdb-sb")
		round()
		r.sameHost(before)
		r.noObjects()
		r.install()
	}
	n.runs(pod{name: "after", node: node})
	n.from("after").to(c.outside(0)).soonArrivesAs(ips...)
}

// recordHost waits until the kernel has all addresses of a node in use.
func (c *cluster) recordHost(t *testing.T, node sandbox.Member) (out string) {
	t.Helper()
	within(t, soon, func() error {
		if out = c.on(t, node.Name, "sh", "-c", harness.HostRecording+harness.FilesRecording); strings.Contains(out, "tentative") {
			return errors.New("an address is tentative")
		}
		return nil
	})
	return out
}

func (c *cluster) removal(t *testing.T, node sandbox.Member) *removal {
	r := &removal{t, c, node, nil}
	const admin = "/run/admin.kubeconfig"
	config, err := os.ReadFile(c.Kubeconfig())
	must(t, err)
	config = bytes.ReplaceAll(config, []byte(c.config.Host), []byte(r.server()))
	_, err = c.feed(t.Context(), node.Name, config, "sh", "-c", "cat >"+admin)
	must(t, err)
	args := c.argsOf(t, node, "egret-node")
	r.command = append([]string{args[0], "remove"}, args[1:]...)
	r.command = append(r.command, "--kubeconfig", admin, "--ovs-state", "/var/lib/openvswitch")
	t.Cleanup(func() { r.controllers(c.StartProcess) })
	return r
}

// server is the API server as nodes reach it.
func (r *removal) server() string {
	return "https://" + netip.AddrPortFrom(r.c.number(250)[0], 6443).String()
}

// controllers starts or stops all.
func (r *removal) controllers(do func(ctx context.Context, node, process string) error) {
	r.Helper()
	for _, m := range r.c.nodes[:sandbox.ControllerNodes] {
		must(r.T, do(context.Background(), m.Name, "egret-controller"))
	}
}

func (r *removal) stopAll(processes ...string) {
	r.Helper()
	for _, p := range processes {
		must(r.T, r.c.StopProcess(r.Context(), r.node.Name, p))
	}
}

// run removes, before so many milliseconds if the command is to be killed then.
func (r *removal) run(killAfter ...string) {
	r.Helper()
	command := r.command
	if len(killAfter) > 0 {
		command = append([]string{"timeout", "-s", "KILL", killAfter[0]}, command...)
	}
	command = append([]string{"sh", "-c", `exec "$@" 2>&1`, "sh"}, command...)
	out, err := r.c.feed(r.Context(), r.node.Name, nil, command...)
	if err != nil && len(killAfter) == 0 {
		r.Fatalf("%s%v", out, err)
	}
	r.Logf("killed after %v: %t\n%s", killAfter, err != nil, out)
}

// killedAndRunAgain is the order of deploy/remove.yaml: Open vSwitch runs until the node has its link back.
func (r *removal) killedAndRunAgain() {
	r.Helper()
	gap := r.reaches(func() {
		for _, after := range []string{"0.05", "0.1", "0.15", "0.2", "0.3", "0.4"} {
			r.run(after)
		}
		r.run()
		r.stopAll("ovs-vswitchd", "ovsdb-server")
		r.run()
	})
	r.Logf("the longest time without an answer of the API server: %v", gap)
	if gap > 3*time.Second {
		r.Errorf("the API server was not reached for %v", gap)
	}
}

func (r *removal) withoutOVS() {
	r.stopAll("ovs-vswitchd", "ovsdb-server")
	r.run()
}

// reaches returns the longest time that the API server was not reached from the node while do runs.
func (r *removal) reaches(do func()) (gap time.Duration) {
	r.Helper()
	const ask = `rm -f /run/end; while [ ! -e /run/end ]; do curl -sk --max-time 1 -o /dev/null "$1/readyz" &&
		date +%s%N; sleep 0.05; done`
	answered := make(chan string)
	go func() {
		out, _ := r.c.feed(r.Context(), r.node.Name, nil, "sh", "-c", ask, "sh", r.server())
		answered <- out
	}()
	do()
	time.Sleep(time.Second)
	r.c.on(r.T, r.node.Name, "touch", "/run/end")
	var last time.Time
	times := strings.Fields(<-answered)
	for _, text := range times {
		n, err := strconv.ParseInt(text, 10, 64)
		must(r.T, err)
		if at := time.Unix(0, n); last.IsZero() {
			last = at
		} else {
			gap, last = max(gap, at.Sub(last)), at
		}
	}
	if len(times) < 10 {
		r.Errorf("the API server answered %d times", len(times))
	}
	return gap
}

// otherHost: the recording shows that Egret is installed.
func (r *removal) otherHost(before string) {
	r.Helper()
	now := harness.DifferingLines(before, r.c.recordHost(r.T, r.node))
	for _, part := range []string{"+ breth0 ", "- eth0 ", "+ default via 172.18.0.1 dev breth0", "lookup 284279",
		"+ table inet egret", "+ table netdev egret", "+ -A FORWARD -i ovn-k8s-mp0",
		"+ net.ipv4.conf.all.send_redirects = 0", "+ ovnnb_db.sock"} {
		if !strings.Contains(now, part) {
			r.Errorf("%q is not among what Egret has changed:\n%s", part, now)
		}
	}
}

func (r *removal) sameHost(before string) {
	r.Helper()
	after := r.c.recordHost(r.T, r.node)
	if after != before {
		r.Errorf("the node differs from before the install:\n%s", harness.DifferingLines(before, after))
	}
	if left := r.c.on(r.T, r.node.Name, "sh", "-c", harness.MarksRecording); left != "" {
		r.Errorf("left are\n%s", left)
	}
}

// noObjects: the Node has what people wrote, and its EgressNode and Lease are gone.
func (r *removal) noObjects() {
	r.Helper()
	o := r.c.node(r.T, r.node.Name)
	for _, keys := range []map[string]string{o.Annotations, o.Labels} {
		for key := range keys {
			if strings.Contains(key, "k8s.ovn.org/") && key != v1.LabelEgressAssignable {
				r.Errorf("the Node still has %s", key)
			}
		}
	}
	err := r.c.kube.Egret.Get().Resource("egressnodes").Name(r.node.Name).Do(r.Context()).Error()
	_, noLease := r.c.api.CoordinationV1().Leases(kube.AgentLeaseNamespace).Get(r.Context(), r.node.Name,
		metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || !apierrors.IsNotFound(noLease) {
		r.Errorf("EgressNode: %v, Lease: %v; want none", err, noLease)
	}
}

// install has Egret start again, as its DaemonSets would: the first one brings the plugin.
func (r *removal) install() {
	r.Helper()
	r.c.on(r.T, r.node.Name, "cp", "/opt/egret/bin/egret-cni", "/opt/cni/bin/egret-cni")
	for _, p := range []string{"ovsdb-server", "ovs-vswitchd", "ovsdb-nb", "ovsdb-sb", "ovn-northd", "ovn-controller",
		"egret-node"} {
		must(r.T, r.c.StartProcess(r.Context(), r.node.Name, p))
	}
	r.controllers(r.c.StartProcess)
	within(r.T, podsTimeout, func() error { return r.c.isReady(r.node.Name) })
	pods, err := r.c.api.CoreV1().Pods("").List(r.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" +
		r.node.Name})
	must(r.T, err)
	for _, p := range pods.Items { // they have lost their links
		if err := r.c.api.CoreV1().Pods(p.Namespace).Delete(r.Context(), p.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64)}); !p.Spec.HostNetwork && err != nil {
			r.Error(err)
		}
	}
	within(r.T, podsTimeout, r.c.systemIsReady)
}
