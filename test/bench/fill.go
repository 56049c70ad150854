package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
	"github.com/egret-net/egret/test/harness"
)

func space(i int) string { return fmt.Sprint("bench-", i%memorySpaces) }

func app(i int) map[string]string { return map[string]string{"app": fmt.Sprint("app-", i)} }

// fill makes the namespaces and the EgressIPs, a tenth of them in the real node's network.
func (c *cluster) fill(ctx context.Context) error {
	if err := harness.Each(ctx, upTo(memorySpaces),
		func(ctx context.Context, i int) error { return c.EnsureNamespace(ctx, space(i)) }); err != nil {
		return err
	}
	if err := c.LabelEgress(ctx, c.Nodes()[0].Name, true); err != nil {
		return err
	}
	return harness.Each(ctx, upTo(memoryEgressIPs), func(ctx context.Context, i int) error {
		e := egressIP(fmt.Sprint("bench-", i), space(i), app(i), memoryIP(i))
		if err := c.CreateEgressIP(ctx, e); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

func memoryIP(i int) netip.Addr {
	if i%10 == 0 {
		return netip.AddrFrom4([4]byte{172, 18, 0, byte(110 + i/10)})
	}
	return netip.AddrFrom4([4]byte{172, 19, byte(100 + i/200), byte(10 + i%200)})
}

// fillRest makes the fake nodes, which the wider controller gives subnets to, their pods, and what the fake nodes hold.
func (c *cluster) fillRest(ctx context.Context, l *lab) error {
	l.say("memory: %d nodes", memoryNodes)
	nodes := make([]*harness.FakeNode, memoryNodes-1)
	for i := range nodes {
		nodes[i] = memoryNode(i)
	}
	if err := c.EnsureFakeNodes(ctx, nodes); err != nil {
		return err
	}
	l.say("memory: %d pods", memoryEgressIPs*podsAnEgressIP)
	var pods []*corev1.Pod
	for i := range memoryEgressIPs * podsAnEgressIP {
		pods = append(pods, harness.FakePod(space(i), nodes[i%len(nodes)], i/len(nodes), app(i%memoryEgressIPs)))
	}
	if err := c.CreatePods(ctx, pods); err != nil {
		return err
	}
	return harness.Until(ctx, 2*time.Minute, 2*time.Second, func() error { return c.hold(ctx) })
}

// memoryNode publishes what a node's agent would; all can host egress IPs.
func memoryNode(i int) *harness.FakeNode {
	name := fmt.Sprint("fake-", i)
	ip := netip.AddrFrom4([4]byte{172, 19, byte(i / 200), byte(10 + i%200)})
	primary := netip.PrefixFrom(ip, 16)
	facts := kube.HostFacts{
		Zone: name, ChassisID: name, Mode: world.SharedGateway, Bridge: "breth0",
		UplinkMAC:     fmt.Sprintf("02:00:ac:13:%02x:%02x", i>>8, i&255),
		ManagementMAC: "0a:58:0a:f4:00:02", Primary: []netip.Prefix{primary}, HostCIDRs: []netip.Prefix{primary},
		Gateways: []netip.Addr{netip.MustParseAddr("172.19.0.1")},
	}
	return &harness.FakeNode{Name: name, Annotations: kube.HostAnnotations(facts),
		Labels: map[string]string{v1.LabelEgressAssignable: "true"}}
}

// hold has every node that is not real say that it holds what it was assigned; all EgressIPs must be assigned by then.
func (c *cluster) hold(ctx context.Context) error {
	all, err := c.EgressIPs(ctx)
	if err != nil {
		return err
	}
	holds := map[string]map[string][]netip.Addr{}
	for _, e := range all {
		if len(e.Status.Items) == 0 {
			return fmt.Errorf("EgressIP %s is not assigned yet", e.Name)
		}
		node := e.Status.Items[0].Node
		if holds[node] == nil {
			holds[node] = map[string][]netip.Addr{}
		}
		holds[node][e.Name] = []netip.Addr{netip.MustParseAddr(e.Status.Items[0].EgressIP)}
	}
	for _, n := range c.Nodes() {
		delete(holds, n.Name)
	}
	var reports []*world.Holding
	for node, h := range holds {
		reports = append(reports, &world.Holding{Node: node, BootID: harness.FakeBootID, Holds: h})
	}
	return harness.Each(ctx, reports, c.report)
}

// report writes a fake node's EgressNode as its agent would.
func (c *cluster) report(ctx context.Context, h *world.Holding) error {
	n, err := c.Core.CoreV1().Nodes().Get(ctx, h.Node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	force := true
	// an object instead of bytes would be sent as no patch at all
	body, err := json.Marshal(kube.EgressNode(h, string(n.UID), "bench", nil))
	if err != nil {
		return err
	}
	return c.Egret.Egret.Patch(types.ApplyPatchType).Resource("egressnodes").Name(h.Node).
		VersionedParams(&metav1.PatchOptions{FieldManager: "egret-bench", Force: &force}, metav1.ParameterCodec).
		Body(body).Do(ctx).Error()
}

// change moves pods from one EgressIP to another of their namespace, one change each.
func (c *cluster) change(ctx context.Context) error {
	list, err := c.Core.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{LabelSelector: "app", Limit: memoryChanges})
	if err != nil {
		return err
	}
	return harness.Each(ctx, list.Items, func(ctx context.Context, p corev1.Pod) error {
		var i int
		if _, err := fmt.Sscanf(p.Labels["app"], "app-%d", &i); err != nil {
			return err
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, app((i + memorySpaces) % memoryEgressIPs)["app"])
		_, err := c.Core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		return err
	})
}
