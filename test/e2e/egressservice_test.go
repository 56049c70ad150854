package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// behindService is a Service with a pod on each node, and its EgressService. A load balancer's part is the test's: it
// writes the ingress IPs, and tells hosts outside the way to the host.
type behindService struct {
	egressService
	n *namespace
	b balanced
}

var behindPods = []string{"a", "b", "c"}

// late are the labels of pods that the Service selects. Of the others only EndpointSlices tell.
var late = map[string]string{"app": "late"}

// newBehindService has pods that send all the time.
func newBehindService(t *testing.T, number int, spec v1.EgressServiceSpec) behindService {
	return newBehindServiceOf(t, number, spec, pod{labels: web, sends: true})
}

func newBehindServiceOf(t *testing.T, number int, spec v1.EgressServiceSpec, like pod) behindService {
	c := theCluster(t)
	n := c.namespace(t, nil)
	s := behindService{egressService: egressService{t, c, n.name, "one"}, n: n}
	for i, p := range behindPods {
		like.name, like.node = p, c.nodes[i]
		n.runs(like)
	}
	n.hasHeadless()
	s.serves(number)
	s.creates(spec)
	return s
}

// serves makes the Service, with the pods as endpoints.
func (s *behindService) serves(number int) {
	s.Helper()
	s.b = s.n.balances("one", number, func(o *corev1.ServiceSpec) { o.Selector = late }, behindPods...)
}

// hasHeadless makes an EndpointSlice of a headless Service, which agents do not follow.
func (n *namespace) hasHeadless() {
	n.t.Helper()
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, ObjectMeta: metav1.ObjectMeta{
		Name:   "headless-1",
		Labels: map[string]string{discoveryv1.LabelServiceName: "headless", corev1.IsHeadlessService: ""}}}
	slices := n.c.api.DiscoveryV1().EndpointSlices(n.name)
	if _, err := slices.Create(n.t.Context(), slice, metav1.CreateOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// readyOn waits until a node is the host, or all are, and hosts outside know.
func (s behindService) readyOn(host string) {
	s.Helper()
	s.isReadyOn(host)
	for _, m := range s.c.nodes {
		if m.Name == host {
			s.announcedBy(m)
		}
	}
}

// announcedBy is what a load balancer does that announces the address on one node.
func (s behindService) announcedBy(m sandbox.Member) {
	s.Helper()
	for _, h := range s.c.hosts {
		s.c.routed(s.T, h, m, s.b.balancer)
	}
}

// on is the spec with a node as the one that can be the host.
func on(m sandbox.Member) metav1.LabelSelector {
	return selects(map[string]string{"kubernetes.io/hostname": m.Name})
}

// moveTo has a node be the one that can be the host.
func (s behindService) moveTo(m sandbox.Member) {
	s.Helper()
	s.patch(fmt.Sprintf(`{"spec":{"nodeSelector":{"matchLabels":{"kubernetes.io/hostname":%q}}}}`, m.Name))
}

// TestEgressService: pods of all nodes leave with their Service's address through its host, which answers; what stays
// in the cluster does not; a move, and the end.
func TestEgressService(t *testing.T) {
	c := theCluster(t)
	s := newBehindService(t, 60, v1.EgressServiceSpec{NodeSelector: on(c.nodes[1])})
	ips := s.b.balancer.ips
	s.readyOn(c.nodes[1].Name)
	within(t, soon, func() error { return s.labelled(c.nodes[1].Name) })
	if row := c.kubectl(t, "get", "-n", s.n.name, "egressservices"); !strings.Contains(row,
		" "+strings.Join(texts(ips), ",")+" ") {
		t.Errorf("kubectl get prints\n%s", row)
	}
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
	s.deletes()
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
	s.moveTo(s.c.nodes[2])
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
		o, err := s.get()
		ready := meta.FindStatusCondition(o.Status.Conditions, "Ready")
		if err == nil && (ready == nil || ready.Status != "False" || !strings.Contains(ready.Message, node)) {
			err = fmt.Errorf("Ready is %v, want False because of %s", ready, node)
		}
		return err
	}
}

// keepsClients: with policy Local a host outside that comes by the network is seen as it is, and is answered by it.
func (s behindService) keepsClients() {
	s.Helper()
	_, err := s.c.api.CoreV1().Services(s.n.name).Patch(s.Context(), "one", mergePatch,
		[]byte(`{"spec":{"externalTrafficPolicy":"Local"}}`), metav1.PatchOptions{})
	must(s.T, err)
	client, node := s.c.hosts[0], s.c.nodes[0]
	node.IPs = node.Secondary[0]
	s.c.routed(s.T, client, node, s.b.balancer)
	from := s.c.from(s.T, client).to(s.b.balancer)
	from.formerly(s.c.management(s.T, node.Name)...).soonArrivesAs(client.Secondary[0]...)
	from.answeredBy(behindPods[0])
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

// TestEgressServiceNetwork: pods leave their own node by a routing table, with the address of its link; on a node whose
// table has no route, as when its routes go, by the main table, as Ready says. The annotation has that dropped.
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
	s.n.from(behindPods[2]).to(c.outside(0)).soonArrivesAs(c.nodes[2].IPs...)
	within(t, soon, s.tellsOfNetwork(c.nodes[2].Name))
	s.patch(`{"metadata":{"annotations":{"egret.k8s.ovn.org/when-unassigned":"drop"}}}`)
	s.n.from(behindPods[2]).to(c.outside(0)).soonReachesNothing()
	s.patch(`{"metadata":{"annotations":null}}`)
	for _, flag := range []string{"-4", "-6"} { // n2 loses its routes
		c.on(t, c.nodes[1].Name, "ip", flag, "route", "flush", "table", table)
	}
	s.n.from(behindPods[1]).to(c.outside(0)).formerly(c.nodes[1].Secondary[0]...).soonArrivesAs(c.nodes[1].IPs...)
	c.from(t, c.hosts[0]).to(s.b.on(c.nodes[1])).answeredBy(behindPods...)
	for i, ip := range c.nodes[1].Secondary[0] {
		s.defaultRoute(c.nodes[1], ip, c.hosts[0].Secondary[0][i], table)
	}
	s.n.from(behindPods[1]).to(c.beside(0)).formerly(c.nodes[1].IPs...).soonArrivesAs(c.nodes[1].Secondary[0]...)
	for i, ip := range c.nodes[2].Secondary[0] { // it gets the table, too
		s.defaultRoute(c.nodes[2], ip, c.hosts[0].Secondary[0][i], table)
	}
	s.readyOn("ALL")
	s.n.from(behindPods[2]).to(c.beside(0)).soonArrivesAs(c.nodes[2].Secondary[0]...)
	s.keepsClients()
	s.deletes()
	within(t, soon, s.nothingLeft)
	s.n.from(behindPods[2]).to(c.outside(0)).soonArrivesAs(c.nodes[2].IPs...)
}
