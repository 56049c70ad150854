package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// behindService is a Service with a pod on each node, and an EgressService. A load balancer's part is the test's: it
// writes the ingress IPs, and tells hosts outside the way to the host.
type behindService struct {
	*testing.T
	c *cluster
	n *namespace
	b balanced
}

var behindPods = []string{"a", "b", "c"}

// late are the labels of pods that the Service selects. Of the others only EndpointSlices tell.
var late = map[string]string{"app": "late"}

func newBehindService(t *testing.T, number int, spec v1.EgressServiceSpec) behindService {
	c := theCluster(t)
	s := behindService{T: t, c: c, n: c.namespace(t, nil)}
	for i, p := range behindPods {
		s.n.runs(pod{name: p, node: c.nodes[i], labels: web, sends: true})
	}
	s.b = s.n.balances("one", number, func(s *corev1.ServiceSpec) { s.Selector = late }, behindPods...)
	o := &v1.EgressService{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: spec}
	err := c.kube.EgressIP.Post().Namespace(s.n.name).Resource("egressservices").Body(o).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.delete)
	return s
}

func (s behindService) delete() {
	err := s.c.kube.EgressIP.Delete().Namespace(s.n.name).Resource("egressservices").Name("one").
		Do(context.Background()).Error()
	if err != nil && !strings.Contains(err.Error(), "not found") {
		s.Error(err)
	}
}

func (s behindService) patch(text string) {
	s.Helper()
	err := s.c.kube.EgressIP.Patch(mergePatch).Namespace(s.n.name).Resource("egressservices").Name("one").
		Body([]byte(text)).Do(s.Context()).Error()
	if err != nil {
		s.Fatal(err)
	}
}

// readyOn waits until a node is the host, or all are, and hosts outside know.
func (s behindService) readyOn(host string) {
	s.Helper()
	within(s.T, soon, func() error {
		o := &v1.EgressService{}
		err := s.c.kube.EgressIP.Get().Namespace(s.n.name).Resource("egressservices").Name("one").
			Do(s.Context()).Into(o)
		if err == nil && (o.Status.Host != host || !meta.IsStatusConditionTrue(o.Status.Conditions, "Ready")) {
			err = fmt.Errorf("status.host is %q, want %q; conditions %v", o.Status.Host, host, o.Status.Conditions)
		}
		return err
	})
	for _, m := range s.c.nodes {
		if m.Name == host {
			s.announcedBy(m)
		}
	}
}

// announcedBy is what a load balancer does that announces the address on one node.
func (s behindService) announcedBy(m sandbox.Member) {
	for _, h := range s.c.hosts {
		s.c.routed(s.T, h, m, s.b.balancer)
	}
}

// on is the spec with a node as the one that can be the host.
func on(m sandbox.Member) metav1.LabelSelector {
	return selects(map[string]string{"kubernetes.io/hostname": m.Name})
}

// labelled says which nodes have the label that load balancers look for.
func (s behindService) labelled(want ...string) error {
	label := "egress-service.k8s.ovn.org/" + s.n.name + "-one"
	list, err := s.c.api.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return err
	}
	var have []string
	for _, n := range list.Items {
		have = append(have, n.Name)
	}
	if slices.Sort(have); !slices.Equal(have, want) {
		return fmt.Errorf("nodes %v have label %s, want %v", have, label, want)
	}
	return nil
}

// TestEgressService: pods of all nodes leave with their Service's address through its host, which answers; what stays
// in the cluster does not; a move, and the end.
func TestEgressService(t *testing.T) {
	c := theCluster(t)
	s := newBehindService(t, 60, v1.EgressServiceSpec{NodeSelector: on(c.nodes[1])})
	ips := s.b.balancer.ips
	s.readyOn(c.nodes[1].Name)
	within(t, soon, func() error { return s.labelled(c.nodes[1].Name) })
	for _, p := range behindPods {
		s.n.from(p).to(c.outside(0)).soonArrivesAs(ips...)
		s.n.from(p).to(c.outside(1)).arrivesAs(ips...)
	}
	c.from(t, c.hosts[0]).to(s.b.balancer).answeredBy(behindPods...)
	c.serveOnNodes(t)
	for i, p := range behindPods {
		for j, node := range c.nodes {
			want := c.nodes[i].IPs
			if i == j {
				want = s.n.ips[p]
			}
			s.n.from(p).to(nodeServer(node)).arrivesAs(want...)
		}
	}
	seen := c.capture(t)
	s.moves(seen, ips)
	s.starts(seen, ips)
	s.delete()
	within(t, soon, func() error { return s.labelled() })
	for i, p := range behindPods {
		s.n.from(p).to(c.outside(0)).formerly(ips...).soonArrivesAs(c.nodes[i].IPs...)
	}
	within(t, soon, s.nothingLeft)
}

// moves has another host, while pods send datagrams: all of them have the Service's address.
func (s behindService) moves(seen *capture, ips []netip.Addr) {
	s.Helper()
	seen.flowing(s.c, s.n, behindPods, time.Now(), soon)
	s.patch(fmt.Sprintf(`{"spec":{"nodeSelector":{"matchLabels":{"kubernetes.io/hostname":%q}}}}`, s.c.nodes[2].Name))
	s.readyOn(s.c.nodes[2].Name)
	seen.flowing(s.c, s.n, behindPods, time.Now(), soon)
	seen.onlyFrom(s.n, ips)
	for _, p := range behindPods {
		s.n.from(p).to(s.c.outside(0)).soonArrivesAs(ips...)
	}
	s.c.from(s.T, s.c.hosts[0]).to(s.b.balancer).answeredBy(behindPods...)
}

// starts has a pod start that sends from its first instruction on, when no EndpointSlice names it: all that it sends
// has the Service's address.
func (s behindService) starts(seen *capture, ips []netip.Addr) {
	s.Helper()
	s.n.runs(pod{name: "late", node: s.c.nodes[0], labels: late, sends: true})
	seen.flowing(s.c, s.n, []string{"late"}, time.Now(), soon)
	seen.onlyFrom(s.n, ips)
}

// tellsOfNetwork says that the EgressService is not Ready, because of a node.
func (s behindService) tellsOfNetwork(node string) func() error {
	return func() error {
		o := &v1.EgressService{}
		err := s.c.kube.EgressIP.Get().Namespace(s.n.name).Resource("egressservices").Name("one").
			Do(s.Context()).Into(o)
		ready := meta.FindStatusCondition(o.Status.Conditions, "Ready")
		if err == nil && (ready == nil || ready.Status != "False" || !strings.Contains(ready.Message, node)) {
			err = fmt.Errorf("Ready is %v, want False because of %s", ready, node)
		}
		return err
	}
}

// defaultRoute gives a routing table of a node the way by its link, for the family of an address.
func (s behindService) defaultRoute(m sandbox.Member, ip, via netip.Addr, table string) {
	s.Helper()
	flag := map[bool]string{true: "-4", false: "-6"}[ip.Is4()]
	s.c.on(s.T, m.Name, "ip", flag, "route", "replace", "default", "via", via.String(), "dev", link, "table", table)
	s.Cleanup(func() {
		_, _ = s.c.feed(context.Background(), m.Name, nil, "ip", flag, "route", "flush", "table", table)
	})
}

// nothingLeft says that no node has rows of the EgressService.
func (s behindService) nothingLeft() error {
	for _, m := range s.c.nodes {
		look := "nft list table inet egret | grep -i egressservice; ip rule show pref 5000; ip -6 rule show pref 5000; " +
			"ovn-nbctl lr-policy-list ovn_cluster_router | grep ' 101 '"
		out, err := s.c.feed(s.Context(), m.Name, nil, "sh", "-c", look)
		if text := strings.TrimSpace(out); text != "" {
			return fmt.Errorf("%s still has %s (%v)", m.Name, text, err)
		}
	}
	return nil
}

// TestEgressServiceNetwork: pods leave their own node by a routing table, with the address of its link; a node without
// the table sends nothing of theirs.
func TestEgressServiceNetwork(t *testing.T) {
	c := theCluster(t)
	const table = "4242"
	for _, m := range c.nodes[:2] {
		for i, ip := range m.Secondary[0] {
			flag, via := map[bool]string{true: "-4", false: "-6"}[ip.Is4()], c.hosts[0].Secondary[0][i]
			add := []string{"ip", flag, "route", "replace", "default", "via", via.String(), "dev", link, "table", table}
			c.on(t, m.Name, add...)
			t.Cleanup(func() {
				_, _ = c.feed(context.Background(), m.Name, nil, "ip", flag, "route", "flush", "table", table)
			})
		}
	}
	s := newBehindService(t, 62, v1.EgressServiceSpec{SourceIPBy: v1.SourceIPNetwork, Network: table})
	for i, p := range behindPods[:2] {
		s.n.from(p).to(c.beside(0)).soonArrivesAs(c.nodes[i].Secondary[0]...)
	}
	s.n.from(behindPods[2]).to(c.outside(0)).soonReachesNothing()
	within(t, soon, s.tellsOfNetwork(c.nodes[2].Name))
	for i, ip := range c.nodes[2].Secondary[0] { // it gets the table, too
		s.defaultRoute(c.nodes[2], ip, c.hosts[0].Secondary[0][i], table)
	}
	s.readyOn("ALL")
	s.n.from(behindPods[2]).to(c.beside(0)).soonArrivesAs(c.nodes[2].Secondary[0]...)
	s.delete()
	within(t, soon, s.nothingLeft)
	s.n.from(behindPods[2]).to(c.outside(0)).soonArrivesAs(c.nodes[2].IPs...)
}
