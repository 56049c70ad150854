package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

const (
	namespace = "chaos"
	groupKey  = "chaos-group"
)

// numbers are the last parts of an EgressIP's addresses: those that it has, and those that a respec gives it.
type numbers struct{ usual, other []int }

const (
	byTraffic = "chaos-t" // an EgressIP that serves its pods to the networks of the EgressIPTraffic of that name alone
	byService = "chaos-s" // a Service with its EgressService
	onLinks   = "chaos-l" // an EgressIP with addresses on the nodes' second links
)

// egressIPs are by name, which is also their pods' value of groupKey.
var egressIPs = map[string]numbers{"chaos-a": {[]int{70, 71}, []int{70, 72}}, "chaos-b": {[]int{80}, []int{81}},
	byTraffic: {[]int{90}, []int{91}}, onLinks: {[]int{60}, []int{61}}}

// ingress are the addresses that the Service has of its load balancer.
var ingress = addresses{netip.MustParseAddr("192.0.2.95"), netip.MustParseAddr("2001:db8::95")}

// otherOf is where a relabel takes a pod.
var otherOf = map[string]string{"chaos-a": "chaos-b", "chaos-b": "chaos-a"}

// cluster is the sandbox with what the program puts there: three egress nodes, four EgressIPs, one of them with
// networks and one on links, and an EgressService. On each node is a pod of each of the first two and one of none, on
// two a pod of each of the others.
type cluster struct{ *harness.Cluster }

func begin(ctx context.Context, o sandbox.Options, log io.Writer) (*cluster, error) {
	s, err := sandbox.Up(ctx, o, log)
	if err != nil {
		return nil, err
	}
	h, err := harness.Connect(s, "egret-chaos")
	if err != nil {
		return nil, err
	}
	c := &cluster{h}
	return c, errors.Join(traffic.Install(ctx, s), c.fill(ctx))
}

// fill makes all objects.
func (c *cluster) fill(ctx context.Context) error {
	err := errors.Join(c.EnsureNamespace(ctx, namespace), c.CreateTraffic(ctx, byTraffic,
		map[string]string{groupKey: byTraffic}, c.networks(0)), c.serve(ctx))
	for name, n := range egressIPs {
		err = errors.Join(err, c.create(ctx, name, n.usual))
	}
	for _, n := range c.Nodes() {
		err = errors.Join(err, c.LabelEgress(ctx, n.Name, true))
	}
	return err
}

func (c *cluster) create(ctx context.Context, name string, n []int) error {
	e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, ip := range c.addresses(name, n) {
		e.Spec.EgressIPs = append(e.Spec.EgressIPs, ip.String())
	}
	e.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": namespace}
	e.Spec.PodSelector.MatchLabels = map[string]string{groupKey: name}
	if name == byTraffic {
		e.Spec.TrafficSelector = &metav1.LabelSelector{MatchLabels: map[string]string{groupKey: name}}
	}
	return c.CreateEgressIP(ctx, e)
}

// networks are one address of the host outside: 0 is that of IPv4, 1 that of IPv6.
func (c *cluster) networks(i int) []v1.CIDR {
	ip := c.ExternalHosts()[0].IPs[i]
	return []v1.CIDR{v1.CIDR(netip.PrefixFrom(ip, ip.BitLen()).String())}
}

// retraffic gives the EgressIPTraffic other networks.
func (c *cluster) retraffic(ctx context.Context, i int) error {
	return c.PatchTraffic(ctx, byTraffic, fmt.Sprintf(
		`[{"op":"replace","path":"/spec/destinationNetworks","value":[%q]}]`, c.networks(i)[0]))
}

// serve makes the Service and its EgressService.
func (c *cluster) serve(ctx context.Context) error {
	policy, of := corev1.IPFamilyPolicyRequireDualStack, metav1.ObjectMeta{Namespace: namespace, Name: byService}
	service := &corev1.Service{ObjectMeta: of, Spec: corev1.ServiceSpec{IPFamilyPolicy: &policy,
		Selector: map[string]string{groupKey: byService}, Ports: []corev1.ServicePort{{Port: 80}}}}
	return errors.Join(c.CreateLoadBalancer(ctx, service, ingress...),
		c.CreateEgressService(ctx, &v1.EgressService{ObjectMeta: of}))
}

// addresses returns those of an EgressIP with these numbers, in each family.
func (c *cluster) addresses(name string, numbers []int) []netip.Addr {
	network := c.Nodes()[0].IPs
	if name == onLinks {
		network = c.Nodes()[0].Secondary[0]
	}
	var out []netip.Addr
	for _, n := range numbers {
		for _, ip := range network {
			bytes := ip.AsSlice()
			bytes[len(bytes)-1] = byte(n)
			a, _ := netip.AddrFromSlice(bytes)
			out = append(out, a)
		}
	}
	return out
}

// sinks returns the addresses of the host outside that pods of a group send to.
func (c *cluster) sinks(group string) []netip.Addr {
	outside := c.ExternalHosts()[0]
	if group == onLinks {
		return outside.Secondary[0]
	}
	return outside.IPs
}

// senders are the pods.
func (c *cluster) senders() map[string]*sender {
	out := map[string]*sender{}
	for i, node := range c.Nodes() {
		groups := map[string]string{"": "plain", "chaos-a": "a", "chaos-b": "b"}
		if i != 1 {
			groups[byTraffic] = "t"
		}
		if i != 2 {
			groups[onLinks] = "l"
		}
		if i != 0 {
			groups[byService] = "s"
		}
		for group, short := range groups {
			name := short + "-" + node.Name
			out[name] = &sender{name: name, node: node.Name, group: history[string]{{value: group}}}
		}
	}
	return out
}

func (c *cluster) createPod(ctx context.Context, s *sender) error {
	group := s.group.last()
	var to []string
	for _, ip := range c.sinks(group) {
		to = append(to, netip.AddrPortFrom(ip, traffic.Port).String())
	}
	pod := traffic.SenderPod(namespace, s.name, s.node, map[string]string{groupKey: group}, to)
	_, err := c.Core.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// recreatePod deletes a pod and creates it again. It returns when a new pod of the name exists.
func (c *cluster) recreatePod(ctx context.Context, s *sender) error {
	pods := c.Core.CoreV1().Pods(namespace)
	var previous types.UID
	err := persist(ctx, func() error {
		p, err := pods.Get(ctx, s.name, metav1.GetOptions{})
		if err == nil {
			previous = p.UID
			only := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
			err = pods.Delete(ctx, s.name, only)
		}
		if apierrors.IsNotFound(err) { // an attempt came through, and its answer did not
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return persist(ctx, func() error {
		err := c.createPod(ctx, s)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		if p, err := pods.Get(ctx, s.name, metav1.GetOptions{}); err != nil || p.UID != previous {
			return err
		}
		return fmt.Errorf("the former pod is still there: %w", err)
	})
}

func (c *cluster) respec(ctx context.Context, name string, ips []netip.Addr) error {
	text := ""
	for i, ip := range ips {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("%q", ip)
	}
	return c.PatchEgressIP(ctx, name, []byte(`{"spec":{"egressIPs":[`+text+`]}}`))
}

// holders are the nodes that an EgressIP's status names, or the EgressService's.
func (c *cluster) holders(ctx context.Context, name string) ([]string, error) {
	if name == byService {
		s, err := c.EgressService(ctx, namespace, name)
		return []string{s.Status.Host}, err
	}
	e, err := c.EgressIP(ctx, name)
	var out []string
	for _, i := range e.Status.Items {
		out = append(out, i.Node)
	}
	return out, err
}

// served returns nil if the EgressService is Ready, which it is not before its pods run.
func (c *cluster) served(ctx context.Context) error {
	s, err := c.EgressService(ctx, namespace, byService)
	if err == nil && !meta.IsStatusConditionTrue(s.Status.Conditions, v1.ConditionReady) {
		err = fmt.Errorf("EgressService %s has host %q: %+v", byService, s.Status.Host, s.Status.Conditions)
	}
	return err
}

// healthy returns nil if all nodes are Ready with an agent of this boot, and all EgressIPs too.
func (c *cluster) healthy(ctx context.Context) error {
	for name := range egressIPs {
		e, err := c.EgressIP(ctx, name)
		if err != nil {
			return err
		}
		if !isReady(e) {
			return fmt.Errorf("EgressIP %s of generation %d is on %s: %+v", name, e.Generation, e.Status.AssignedNodes,
				e.Status.Conditions)
		}
	}
	for _, n := range c.Nodes() {
		if err := c.nodeCalm(ctx, n.Name); err != nil {
			return err
		}
	}
	return nil
}

func isReady(e *v1.EgressIP) bool {
	c := meta.FindStatusCondition(e.Status.Conditions, v1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == e.Generation &&
		len(e.Status.Items) == len(e.Spec.EgressIPs)
}

func (c *cluster) nodeCalm(ctx context.Context, name string) error {
	_, e, err := c.NodeWhole(ctx, name)
	if err == nil && len(e.Status.Problems) > 0 {
		err = fmt.Errorf("node %s has problems %q", name, e.Status.Problems)
	}
	return err
}

// until asks again and again until the answer is nil; after a while the last answer is the error.
func until(ctx context.Context, limit time.Duration, ask func() error) error {
	return harness.Until(ctx, limit, 100*time.Millisecond, ask)
}
