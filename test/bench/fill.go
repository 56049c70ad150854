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
)

func space(i int) string { return fmt.Sprint("bench-", i%memorySpaces) }

func app(i int) map[string]string { return map[string]string{"app": fmt.Sprint("app-", i)} }

// fill makes the namespaces and the EgressIPs, a tenth of them in the real node's network.
func (c *cluster) fill(ctx context.Context) error {
	var numbers []int
	for i := range memoryEgressIPs {
		numbers = append(numbers, i)
	}
	if err := each(ctx, numbers[:memorySpaces], func(ctx context.Context, i int) error { return c.ensureNamespace(ctx, space(i)) }); err != nil {
		return err
	}
	if err := c.labelEgress(ctx, c.Nodes()[0].Name, true); err != nil {
		return err
	}
	return each(ctx, numbers, func(ctx context.Context, i int) error {
		e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("bench-", i)}}
		e.Spec.EgressIPs = []string{memoryIP(i).String()}
		e.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": space(i)}
		e.Spec.PodSelector.MatchLabels = app(i)
		if err := c.createEgressIP(ctx, e); !apierrors.IsAlreadyExists(err) {
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
	nodes := make([]*fakeNode, memoryNodes-1)
	for i := range nodes {
		nodes[i] = memoryNode(i)
	}
	if err := c.ensureFakeNodes(ctx, nodes); err != nil {
		return err
	}
	l.say("memory: %d pods", memoryEgressIPs*podsAnEgressIP)
	var pods []*corev1.Pod
	for i := range memoryEgressIPs * podsAnEgressIP {
		pods = append(pods, fakePod(space(i), nodes[i%len(nodes)], i/len(nodes), app(i%memoryEgressIPs)))
	}
	if err := c.createPods(ctx, pods); err != nil {
		return err
	}
	return until(ctx, 2*time.Minute, 2*time.Second, func() error { return c.hold(ctx) })
}

// memoryNode publishes what a node's agent would; all can host egress IPs.
func memoryNode(i int) *fakeNode {
	name := fmt.Sprint("fake-", i)
	ip := netip.AddrFrom4([4]byte{172, 19, byte(i / 200), byte(10 + i%200)})
	primary := netip.PrefixFrom(ip, 16)
	facts := kube.HostFacts{
		Zone: name, ChassisID: name, Mode: world.SharedGateway, Bridge: "breth0", UplinkMAC: fmt.Sprintf("02:00:ac:13:%02x:%02x", i>>8, i&255),
		ManagementMAC: "0a:58:0a:f4:00:02", Primary: []netip.Prefix{primary}, HostCIDRs: []netip.Prefix{primary},
		Gateways: []netip.Addr{netip.MustParseAddr("172.19.0.1")},
	}
	return &fakeNode{name: name, annotations: kube.HostAnnotations(facts), labels: map[string]string{v1.LabelEgressAssignable: "true"}}
}

// hold has every node that is not real say that it holds what it was assigned; all EgressIPs must be assigned by then.
func (c *cluster) hold(ctx context.Context) error {
	list := &v1.EgressIPList{}
	if err := c.egret.EgressIP.Get().Resource("egressips").Do(ctx).Into(list); err != nil {
		return err
	}
	holds := map[string]map[string][]netip.Addr{}
	for _, e := range list.Items {
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
	var all []*world.Holding
	for node, h := range holds {
		all = append(all, &world.Holding{Node: node, BootID: fakeBootID, Holds: h})
	}
	return each(ctx, all, c.report)
}

// report writes a fake node's EgressNode as its agent would.
func (c *cluster) report(ctx context.Context, h *world.Holding) error {
	n, err := c.core.CoreV1().Nodes().Get(ctx, h.Node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	force := true
	body, err := json.Marshal(kube.EgressNode(h, string(n.UID), "bench", nil)) // an object instead of bytes would be sent as no patch at all
	if err != nil {
		return err
	}
	return c.egret.Egret.Patch(types.ApplyPatchType).Resource("egressnodes").Name(h.Node).
		VersionedParams(&metav1.PatchOptions{FieldManager: "egret-bench", Force: &force}, metav1.ParameterCodec).
		Body(body).Do(ctx).Error()
}

// change moves pods from one EgressIP to another of their namespace, one change each.
func (c *cluster) change(ctx context.Context) error {
	list, err := c.core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "app", Limit: memoryChanges})
	if err != nil {
		return err
	}
	return each(ctx, list.Items, func(ctx context.Context, p corev1.Pod) error {
		var i int
		if _, err := fmt.Sscanf(p.Labels["app"], "app-%d", &i); err != nil {
			return err
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{"app":%q}}}`, app((i + memorySpaces) % memoryEgressIPs)["app"])
		_, err := c.core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}
