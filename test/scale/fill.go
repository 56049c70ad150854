package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
	"github.com/egret-net/egret/test/harness"
)

const (
	hosts     = 10  // nodes that can host egress IPs
	egressIPs = 100 // with a pod each
	few       = 10  // nodes with a pod of the EgressIP of few
	namespace = "scale"
	// everywhere is an EgressIP with a pod on every node, and somewhere one with pods on a few.
	everywhere, somewhere = "everywhere", "somewhere"
)

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// facts is what the i-th node's agent says of its host.
func facts(i int) kube.HostFacts {
	ip := netip.AddrFrom4([4]byte{172, 19, byte(i / 200), byte(10 + i%200)})
	primary := netip.PrefixFrom(ip, 16)
	return kube.HostFacts{
		Zone: nodeName(i), ChassisID: nodeName(i), Mode: world.SharedGateway, Bridge: "breth0",
		UplinkMAC:     fmt.Sprintf("02:00:ac:13:%02x:%02x", i>>8, i&255),
		ManagementMAC: "0a:58:0a:f4:00:02", Primary: []netip.Prefix{primary}, HostCIDRs: []netip.Prefix{primary},
		Gateways: []netip.Addr{netip.MustParseAddr("172.19.255.1")},
	}
}

// nodeObject is what a kubelet registers.
func nodeObject(i int) *corev1.Node {
	name := nodeName(i)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}}
	if i < hosts {
		n.Labels[v1.LabelEgressAssignable] = ""
	}
	ip := facts(i).Primary[0].Addr().String()
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip},
		{Type: corev1.NodeHostName, Address: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{BootID: bootID, KernelVersion: "6.1.0", OSImage: "Debian GNU/Linux 12",
		ContainerRuntimeVersion: "containerd://2.0.0", KubeletVersion: "v1.36.0", OperatingSystem: "linux",
		Architecture: "amd64"}
	return n
}

// fill makes nodes, EgressIPs and their pods, and waits until the controller has assigned everything.
func (c *cluster) fill(ctx context.Context, nodes int) error {
	c.nodes = nodes
	if _, err := c.core.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := harness.Each(ctx, numbers(nodes), func(ctx context.Context, i int) error {
		n := nodeObject(i)
		n.Annotations = kube.HostAnnotations(facts(i))
		_, err := c.core.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	subnets, err := c.subnets(ctx)
	if err != nil {
		return err
	}
	// Kubernetes' controllers make it; no pod is taken without.
	if err := harness.Until(ctx, time.Minute, time.Second, func() error {
		_, err := c.core.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	if err := harness.Each(ctx, numbers(egressIPs), func(ctx context.Context, i int) error {
		return c.createEgressIP(ctx, fmt.Sprint("one-", i), i, "")
	}); err != nil {
		return err
	}
	for i, name := range []string{everywhere, somewhere} {
		if err := c.createEgressIP(ctx, name, egressIPs+i, nodeName(0)); err != nil {
			return err
		}
	}
	return harness.Each(ctx, podObjects(subnets), c.createPod)
}

func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// subnets waits for all nodes' pod subnets.
func (c *cluster) subnets(ctx context.Context) (out []*harness.FakeNode, err error) {
	err = harness.Until(ctx, 5*time.Minute, time.Second, func() error {
		list, err := c.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		out = nil
		for i := range list.Items {
			n := kube.Node(&list.Items[i])
			if len(n.Subnets) == 0 || len(n.Record.Addrs) == 0 {
				return fmt.Errorf("node %s has no subnet, or is not recorded", n.Name)
			}
			out = append(out, &harness.FakeNode{Name: n.Name, Subnet: n.Subnets[0]})
		}
		return nil
	})
	return out, err
}

// createEgressIP makes an EgressIP of the pods that are labelled with its name. With host, that node alone can have it.
func (c *cluster) createEgressIP(ctx context.Context, name string, i int, host string) error {
	e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Spec.EgressIPs = []string{netip.AddrFrom4([4]byte{172, 19, 254, byte(i)}).String()}
	e.Spec.NamespaceSelector.MatchLabels = map[string]string{corev1.LabelMetadataName: namespace}
	e.Spec.PodSelector.MatchLabels = map[string]string{"app": name}
	if host != "" {
		e.Spec.EgressNodeSelector.MatchLabels = map[string]string{corev1.LabelHostname: host}
	}
	return c.egret.EgressIP.Post().Resource("egressips").Body(e).Do(ctx).Error()
}

// podObjects are a pod of everywhere on each node, of somewhere on a few, and of the others in turns.
func podObjects(nodes []*harness.FakeNode) (pods []*corev1.Pod) {
	add := func(i, number int, app string) {
		pods = append(pods, harness.FakePod(namespace, nodes[i%len(nodes)], number, map[string]string{"app": app}))
	}
	for i := range nodes {
		add(i, 0, everywhere)
	}
	for i := range few {
		add(hosts+i, 1, somewhere)
	}
	for i := range egressIPs {
		add(i, 2+i/len(nodes), fmt.Sprint("one-", i))
	}
	return pods
}

// createPod makes a pod that runs.
func (c *cluster) createPod(ctx context.Context, p *corev1.Pod) error {
	if _, err := c.core.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return err
	}
	return c.markRunning(ctx, p)
}
