package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
)

// networkCounts are the numbers of networks at which a node is looked at.
func networkCounts() []int { return []int{0, 1, 10, 100} }

// networkCost measures what primary networks of namespaces cost a node where all have a pod: rows of OVN's databases,
// flows of br-int, memory, and how long one more pod of the last network takes to be Ready. All networks have the same
// subnet.
func networkCost(ctx context.Context, l *lab) error {
	c, err := l.sandbox(ctx, "-networks", 3, sandbox.Egret)
	if err != nil {
		return err
	}
	made := 0
	for _, n := range networkCounts() {
		l.say("networks: %d", n)
		for ; made < n; made++ {
			if err := c.addNetwork(ctx, networkName(made)); err != nil {
				return err
			}
		}
		if err := c.reportNetworks(ctx, l, n); err != nil {
			return err
		}
	}
	return l.down(c.Options().Name)
}

// benchSubnet is that of each network.
var benchSubnet = v1.Layer3Subnet{CIDR: "10.128.0.0/16", HostSubnet: 24}

func networkName(i int) string { return fmt.Sprintf("net-%03d", i) }

// addNetwork makes a namespace with a network and a running pod on each node.
func (c *cluster) addNetwork(ctx context.Context, name string) error {
	if err := c.EnsureNetwork(ctx, name, benchSubnet); err != nil {
		return err
	}
	for _, n := range c.Nodes() {
		pod := harness.Bare(name, n.Name, n.Name, "localhost/pause:1")
		if _, err := c.Core.CoreV1().Pods(name).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return harness.Until(ctx, 2*time.Minute, 100*time.Millisecond, func() error {
		list, err := c.Core.CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(list.Items, func(p corev1.Pod) bool { return !isReady(&p) }); i >= 0 {
			return fmt.Errorf("pod %s/%s is not ready", name, list.Items[i].Name)
		}
		return nil
	})
}

func (c *cluster) reportNetworks(ctx context.Context, l *lab, n int) error {
	name, node := fmt.Sprintf("networks/%d", n), c.Nodes()[len(c.Nodes())-1].Name
	for what, command := range map[string]string{
		"nb-rows":       "ovsdb-client dump unix:/run/ovn/ovnnb_db.sock OVN_Northbound | grep -c -E '^\"?[0-9a-f]{8}-'",
		"logical-flows": "ovn-sbctl --bare --columns=_uuid list Logical_Flow | grep -c .",
		"br-int-flows":  "ovs-ofctl dump-aggregate br-int | sed 's/.*flow_count=//'",
		"br-ext-flows":  "ovs-ofctl dump-aggregate breth0 | sed 's/.*flow_count=//'",
	} {
		out, err := c.ExecIn(ctx, node, "bash", "-c", command)
		if err != nil {
			return err
		}
		var count float64
		if _, err := fmt.Sscan(string(out), &count); err != nil {
			return fmt.Errorf("%s: %q: %w", what, out, err)
		}
		l.report(result{name: name + "/" + what, unit: "rows", runs: sample{count}})
	}
	for _, program := range []string{"egret-node", "ovn-controller", "ovs-vswitchd"} {
		pid, err := c.PidOf(ctx, node, program)
		if err != nil {
			return err
		}
		resident, _, err := c.Resident(ctx, node, pid)
		if err != nil {
			return err
		}
		l.report(result{name: name + "/" + program + "/VmRSS", unit: "MiB", runs: sample{resident}})
	}
	space := namespace
	if n > 0 {
		space = networkName(n - 1)
	} else if err := c.EnsureNamespace(ctx, space); err != nil {
		return err
	}
	return c.reportPods(ctx, l, name, space)
}

// reportPods times one more pod of a namespace, again and again.
func (c *cluster) reportPods(ctx context.Context, l *lab, name, space string) error {
	var times sample
	for i := range l.runs + 1 {
		took, err := c.podReadyIn(ctx, space, fmt.Sprint("add-", i))
		if err != nil {
			return err
		}
		if i > 0 { // the first one finds cold caches
			times.addTime(took)
		}
	}
	l.report(result{name: name + "/pod-ready", unit: "ms", runs: times})
	return nil
}
