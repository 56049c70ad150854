package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// TestServices is seed external-traffic-policy.md, every row: connections from outside, from nodes and from pods, to
// Services of pods and of hosts, with both policies. Pod "one" is on the first node, "two" on the second, and nothing
// on the third but a client.
func TestServices(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	n.runs(pod{name: "one", node: c.nodes[0], labels: web}, pod{name: "two", node: c.nodes[1]}, pod{name: "client",
		node: c.nodes[2]})
	c.hostServers(t)
	n.each(
		part{"ClusterPods", clusterPods}, part{"LocalPods", localPods}, part{"LocalByLink", localByLink},
		part{"ClusterHosts", clusterHosts}, part{"LocalHosts", localHosts},
		part{"Mixed", mixed}, part{"Nobody", nobody}, part{"Unserved", unserved}, part{"Affinity", affinity},
		part{"WithoutNodePort", withoutNodePort}, part{"OwnEndpoint", ownEndpoint},
		part{"HealthCheck", healthCheck}, part{"NodeHealth", nodeHealth}, part{"Datagrams", datagrams},
		part{"Fragmented", fragmented},
		part{"Egress", servedAndEgress},
		part{"SamePort", samePort}, part{"RefusedAddress", refusedAddress},
		part{"NodeAddress", nodeAddress},
		part{"SomeClients", someClients}, part{"BegunEarly", begunEarly}, part{"BegunByLink",
			begunByLink}, part{"LostFirst", lostFirst},
		part{"FirstOfAffinity", firstOfAffinity},
	)
}

func local(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }

// inCluster: whatever the policy is, all that is in the cluster reaches all endpoints, by every address.
func (b balanced) inCluster(t *testing.T, names ...string) {
	t.Helper()
	c := b.n.c
	for _, to := range []endpoint{b.cluster, b.balancer, b.external} {
		b.n.from("client").to(to).answeredBy(names...)
		for _, node := range c.nodes {
			c.from(t, node).to(to).answeredBy(names...)
		}
	}
	b.n.from("client").to(b.on(c.nodes[2])).answeredBy(names...)
	for _, node := range c.nodes {
		c.from(t, node).to(b.on(node)).answeredBy(names...)
	}
}

// byAllWays are its addresses as a host outside uses them on one node.
func (b balanced) byAllWays(t *testing.T, node int) []endpoint {
	t.Helper()
	c := b.n.c
	c.routed(t, c.hosts[0], c.nodes[node], b.balancer)
	c.routed(t, c.hosts[0], c.nodes[node], b.external)
	return []endpoint{b.on(c.nodes[node]), b.balancer, b.external}
}

// clusterPods: any node serves, and the source is the node's.
func clusterPods(t *testing.T, n *namespace) {
	s := n.balances("cluster-pods", 10, nil, "one", "two")
	for i := range n.c.nodes {
		for _, to := range s.byAllWays(t, i) {
			f := n.c.from(t, n.c.hosts[0]).to(to)
			f.answeredBy("one", "two")
			seen, err := f.sources(2)
			if err != nil || slices.ContainsFunc(seen,
				func(a netip.Addr) bool { return slices.Contains(n.c.hosts[0].IPs, a) }) {
				t.Errorf("host outside to %s on node %d arrives as %v, %v; want the node's translation", to.name, i,
					seen, err)
			}
		}
	}
	s.inCluster(t, "one", "two")
}

// localPods: the node with the pod serves, and the pod sees the client; the others refuse.
func localPods(t *testing.T, n *namespace) {
	s := n.balances("local-pods", 20, local, "one")
	outside := n.c.from(t, n.c.hosts[0])
	for _, to := range s.byAllWays(t, 0) {
		outside.to(to).answeredBy("one")
		outside.to(to).arrivesAs(n.c.hosts[0].IPs...)
	}
	for _, to := range s.byAllWays(t, 1) {
		outside.to(to).refused()
	}
	n.c.from(t, n.c.nodes[1]).to(s.on(n.c.nodes[0])).answeredBy("one") // another node is outside
	n.c.from(t, n.c.nodes[1]).to(s.on(n.c.nodes[0])).arrivesAs(n.c.nodes[1].IPs...)
	s.inCluster(t, "one")
}

// localByLink: the same by a link beside the primary network, also where the pod has an egress IP, on either.
func localByLink(t *testing.T, n *namespace) {
	s := n.balances("local-by-link", 160, local, "one")
	c := n.c
	outside, client := c.from(t, c.hosts[0]), c.hosts[0].Secondary[0]
	to := func(node int) endpoint {
		return endpoint{"node port by a link", c.nodes[node].Secondary[0], s.nodePort}
	}
	seen := func() {
		outside.to(to(0)).answeredBy("one")
		outside.to(to(0)).arrivesAs(client...)
		outside.to(to(1)).refused()
		c.from(t, c.nodes[1]).to(to(0)).arrivesAs(c.nodes[1].Secondary[0]...)
	}
	seen()
	c.labelEgress(t, c.nodes[1])
	for name, ips := range map[string][]netip.Addr{"by-uplink": c.number(75), "by-link": c.secondaryNumber(76)} {
		e := c.egressIP(t, "served-"+name, ips, n.itself(), selects(web))
		e.ready()
		seen()
		e.delete()
	}
}

// clusterHosts: the endpoints are hosts, of which the third node is none.
func clusterHosts(t *testing.T, n *namespace) {
	hosts := []string{n.c.nodes[0].Name, n.c.nodes[1].Name}
	s := n.balances("cluster-hosts", 30, nil, hosts...)
	for i := range n.c.nodes {
		for _, to := range s.byAllWays(t, i) {
			n.c.from(t, n.c.hosts[0]).to(to).answeredBy(hosts...)
		}
	}
	s.inCluster(t, hosts...)
}

// localHosts: a host serves its own clients with their addresses.
func localHosts(t *testing.T, n *namespace) {
	host := n.c.nodes[0].Name
	s := n.balances("local-hosts", 40, local, host)
	outside := n.c.from(t, n.c.hosts[0])
	for _, to := range s.byAllWays(t, 0) {
		outside.to(to).answeredBy(host)
		outside.to(to).arrivesAs(n.c.hosts[0].IPs...)
	}
	for _, to := range s.byAllWays(t, 1) {
		outside.to(to).refused()
	}
	s.inCluster(t, host)
}

// mixed: a host and pods on one node all serve, and all see the client if the policy is Local.
func mixed(t *testing.T, n *namespace) {
	host := n.c.nodes[0].Name
	s, l := n.balances("mixed-cluster", 50, nil, "one", "two", host), n.balances("mixed-local", 60, local, "one", "two",
		host)
	outside := n.c.from(t, n.c.hosts[0])
	for _, to := range s.byAllWays(t, 0) {
		outside.to(to).answeredBy("one", "two", host)
	}
	for _, to := range l.byAllWays(t, 0) {
		outside.to(to).answeredBy("one", host)
		outside.to(to).arrivesAs(n.c.hosts[0].IPs...)
	}
	for _, to := range l.byAllWays(t, 1) {
		outside.to(to).answeredBy("two")
		outside.to(to).arrivesAs(n.c.hosts[0].IPs...)
	}
	s.inCluster(t, "one", "two", host)
	l.inCluster(t, "one", "two", host)
}

// nobody: without endpoints everybody is refused, everywhere.
func nobody(t *testing.T, n *namespace) {
	for i, change := range []func(*corev1.ServiceSpec){nil, local} {
		s := n.balances(fmt.Sprint("nobody-", i), 70+5*i, change)
		for _, to := range s.byAllWays(t, 0) {
			n.c.from(t, n.c.hosts[0]).to(to).refused()
			n.c.from(t, n.c.nodes[0]).to(to).refused()
		}
		n.c.from(t, n.c.nodes[0]).to(s.cluster).refused()
		n.from("client").to(s.cluster).refused()
	}
}

// affinity: a client stays with its endpoint, whoever it is.
func affinity(t *testing.T, n *namespace) {
	sticky := func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP }
	for i, to := range [][]string{{"one", "two"}, {"one", "two", n.c.nodes[0].Name}} {
		s := n.balances(fmt.Sprint("sticky-", i), 80+5*i, sticky, to...)
		for _, f := range []fromTo{
			n.c.from(t, n.c.hosts[0]).to(s.on(n.c.nodes[0])), n.c.from(t, n.c.nodes[0]).to(s.on(n.c.nodes[0])),
			n.c.from(t, n.c.nodes[0]).to(s.cluster),
			n.from("client").to(s.cluster),
		} {
			f.stays()
		}
	}
}

// stays says that all connections to one address are answered by the same.
func (f fromTo) stays() {
	f.t.Helper()
	for _, ip := range f.to.ips {
		one := f
		one.to.ips = []netip.Addr{ip}
		within(f.t, programmed, func() error {
			answers, err := one.answers(12)
			if err != nil || len(slices.Compact(answers)) != 1 {
				return fmt.Errorf("%s to %s at %s: %v, %v answer in turn, want one", f.from.from.name, f.to.name, ip,
					err, answers)
			}
			return nil
		})
	}
}

// withoutNodePort: a load balancer's address works without a node port.
func withoutNodePort(t *testing.T, n *namespace) {
	s := n.balances("portless", 95, func(s *corev1.ServiceSpec) {
		local(s)
		no := false
		s.AllocateLoadBalancerNodePorts = &no
	}, "one")
	if s.nodePort != 0 {
		t.Fatalf("it has node port %d", s.nodePort)
	}
	outside := n.c.from(t, n.c.hosts[0])
	n.c.routed(t, n.c.hosts[0], n.c.nodes[0], s.balancer)
	outside.to(s.balancer).answeredBy("one")
	outside.to(s.balancer).arrivesAs(n.c.hosts[0].IPs...)
	n.c.routed(t, n.c.hosts[0], n.c.nodes[1], s.balancer)
	outside.to(s.balancer).refused()
}

// someClients: a load balancer's address is for those whom spec.loadBalancerSourceRanges names, wherever they are; the
// cluster IP is for all.
func someClients(t *testing.T, n *namespace) {
	c := n.c
	s := n.balances("ranged", 170, func(s *corev1.ServiceSpec) {
		for _, ip := range slices.Concat(n.ips["client"], c.hosts[0].IPs) {
			s.LoadBalancerSourceRanges = append(s.LoadBalancerSourceRanges, netip.PrefixFrom(ip, ip.BitLen()).String())
		}
	}, "one")
	for _, h := range c.hosts[:2] {
		c.routed(t, h, c.nodes[0], s.balancer)
	}
	n.from("client").to(s.balancer).answeredBy("one")
	c.from(t, c.hosts[0]).to(s.balancer).answeredBy("one")
	n.from("two").to(s.balancer).soonReachesNothing()
	c.from(t, c.nodes[1]).to(s.balancer).soonReachesNothing()
	c.from(t, c.hosts[1]).to(s.balancer).soonReachesNothing()
	n.from("two").to(s.cluster).answeredBy("one")
}

// healthCheck: a load balancer is told by each node how many endpoints are there.
func healthCheck(t *testing.T, n *namespace) {
	s := n.balances("checked", 100, local, "one")
	port := int(n.c.service(t, n.name, s.name).Spec.HealthCheckNodePort)
	for i, want := range []struct {
		status int
		count  string
	}{{200, `"localEndpoints": 1`}, {503, `"localEndpoints": 0`}} {
		for _, ip := range n.c.nodes[i].IPs {
			within(t, programmed, func() error {
				r, err := clientIn(n.c.hosts[0].Name).Get(url(ip, port, "/"))
				if err != nil {
					return err
				}
				defer r.Body.Close()
				body, err := io.ReadAll(r.Body)
				if err != nil || r.StatusCode != want.status || !strings.Contains(string(body), want.count) {
					return fmt.Errorf("health check of %s at %s says %d %s, %v; want %d and %s", s.name, ip,
						r.StatusCode, body, err, want.status, want.count)
				}
				return nil
			})
		}
	}
	if err := n.c.api.CoreV1().Services(n.name).Delete(t.Context(), s.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, programmed, func() error {
		if r, err := clientIn(n.c.hosts[0].Name).Get(url(n.c.nodes[0].IPs[0], port, "/")); err == nil {
			r.Body.Close()
			return fmt.Errorf("the health check of a deleted Service answers %s", http.StatusText(r.StatusCode))
		}
		return nil
	})
}

// nodeHealth: load balancers are told whether a node takes connections at all, which one that is about to go does not.
func nodeHealth(t *testing.T, n *namespace) {
	node := n.c.nodes[2]
	says := func(status int) {
		t.Helper()
		for _, ip := range node.IPs {
			within(t, programmed, func() error {
				r, err := clientIn(n.c.hosts[0].Name).Get(url(ip, sandbox.NodeHealthPort, "/healthz"))
				if err != nil {
					return err
				}
				if r.Body.Close(); r.StatusCode != status {
					err = fmt.Errorf("%s at %s says %d, want %d", node.Name, ip, r.StatusCode, status)
				}
				return err
			})
		}
	}
	says(http.StatusOK)
	taint := func(ctx context.Context, taints string) {
		if _, err := n.c.api.CoreV1().Nodes().Patch(ctx, node.Name, mergePatch, []byte(taints),
			metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { taint(context.Background(), `{"spec":{"taints":null}}`) })
	taint(t.Context(), `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}}`)
	says(http.StatusServiceUnavailable)
	taint(t.Context(), `{"spec":{"taints":null}}`)
	says(http.StatusOK)
}

// datagrams: a client that goes on sending from one port follows the endpoints, from outside and from a node, with both
// policies.
func datagrams(t *testing.T, n *namespace) {
	for i, change := range []func(*corev1.ServiceSpec){nil, local} {
		s := n.balances(fmt.Sprint("datagrams-", i), 110+5*i, change, "one")
		udp := int(n.c.service(t, n.name, s.name).Spec.Ports[1].NodePort)
		n.runs(pod{name: fmt.Sprint("next-", i), node: n.c.nodes[0]})
		for _, endpoint := range []string{"one", fmt.Sprint("next-", i), "one"} {
			s.goesTo(endpoint)
			for j, ip := range n.c.nodes[0].IPs {
				for _, who := range []string{n.c.hosts[0].Name, n.c.nodes[0].Name} {
					from := netip.AddrPortFrom([]netip.Addr{netip.IPv4Unspecified(),
						netip.IPv6Unspecified()}[map[bool]int{true: 0, false: 1}[ip.Is4()]], uint16(20000+10*i+j))
					within(t, programmed, func() error {
						answer, err := datagram(who, from, netip.AddrPortFrom(ip, uint16(udp)), "hostname")
						if err != nil || answer != endpoint {
							return fmt.Errorf("datagram of %s to node port %d at %s: %q, %v; want %s", who, udp, ip,
								answer, err, endpoint)
						}
						return nil
					})
				}
			}
		}
	}
}

// fragmented: a datagram in fragments that begins a connection is answered, by all addresses that the outside uses and
// for a process of a node, with both policies.
func fragmented(t *testing.T, n *namespace) {
	question := "echo " + strings.Repeat("x", 2000) // the server reads 2,048 bytes
	for i, change := range []func(*corev1.ServiceSpec){nil, local} {
		s := n.balances(fmt.Sprint("fragmented-", i), 210+5*i, change, "one")
		nodePort := n.c.service(t, n.name, s.name).Spec.Ports[1].NodePort
		n.c.routed(t, n.c.hosts[0], n.c.nodes[0], s.balancer)
		n.c.routed(t, n.c.hosts[0], n.c.nodes[0], s.external)
		outside, node := n.c.hosts[0].Name, n.c.nodes[0].Name
		for who, all := range map[string][]endpoint{node: {s.cluster},
			outside: {{"node port", n.c.nodes[0].IPs, int(nodePort)}, s.balancer, s.external}} {
			for _, to := range all {
				for _, ip := range to.ips {
					at := netip.AddrPortFrom(ip, uint16(to.port))
					within(t, programmed, func() error {
						answer, err := datagram(who, netip.AddrPort{}, at, question)
						if err != nil || "echo "+answer != question {
							return fmt.Errorf("%s to %s of Service %s: %d bytes, %v", who, at, s.name, len(answer), err)
						}
						return nil
					})
				}
			}
		}
	}
}

// servedAndEgress: a pod with an egress IP behind a Service answers with the Service's address, whichever node the
// client asks, and what it opens itself carries the egress IP.
func servedAndEgress(t *testing.T, n *namespace) {
	n.c.labelEgress(t, n.c.nodes[1])
	ips := n.c.number(70)[:1]
	e := n.c.egressIP(t, "served", ips, n.itself(), selects(web))
	e.ready()
	s, l := n.balances("served-cluster", 120, nil, "one"), n.balances("served-local", 125, local, "one")
	outside := n.c.from(t, n.c.hosts[0])
	for i := range n.c.nodes {
		for _, to := range s.byAllWays(t, i) {
			outside.to(to).answeredBy("one")
		}
	}
	for _, to := range l.byAllWays(t, 0) {
		outside.to(to).answeredBy("one")
		outside.to(to).arrivesAs(n.c.hosts[0].IPs...)
	}
	s.inCluster(t, "one")
	l.inCluster(t, "one")
	n.from("one").to(family4or6(n.c.outside(0), ips[0])).arrivesAs(ips...)
	n.repliesTo("one", []int{s.nodePort}, ips...)
	e.delete()
}

// repliesTo: the answers to a pod's own connection come back to it although its port is some Service's node port; one a
// family, for a port is not used again at once. The port stays, unless the pod leaves with a node's address.
func (n *namespace) repliesTo(pod string, ports []int, as ...netip.Addr) {
	n.t.Helper()
	for i, a := range as {
		ip, port := numberedOf(n.c.hosts[0].IPs, a.Is4())[0], ports[i]
		out, err := fetch(n.t.Context(), n.clientAt(pod, port), url(ip, n.c.outside(0).port, "/clientip"))
		seen, _ := netip.ParseAddrPort(out)
		if err != nil || seen.Addr() != a || (int(seen.Port()) == port) == n.c.isNodes(a) {
			n.t.Errorf("pod %s from port %d to a host outside: seen as %q, %v; want %s", pod, port, out, err, a)
		}
	}
}

// samePort: the same for a pod that leaves with its node's address, on the very node whose node port that is.
func samePort(_ *testing.T, n *namespace) {
	a, b := n.balances("same-port-a", 130, nil, "two"), n.balances("same-port-b", 135, nil, "two")
	for _, s := range []balanced{a, b} {
		n.c.from(n.t, n.c.hosts[0]).to(s.on(n.c.nodes[1])).answeredBy("two")
	}
	n.repliesTo("two", []int{a.nodePort, b.nodePort}, n.c.nodes[1].IPs...)
}

// nodeAddress: a load balancer gives a node's own address, as ServiceLB of k3s does. Everybody reaches the Service
// there.
func nodeAddress(t *testing.T, n *namespace) {
	s, node := n.balances("at-node", 148, nil, "one"), n.c.nodes[1]
	n.ingress(s.name, node.IPs)
	at := endpoint{"the node's own address", node.IPs, 80}
	n.c.from(t, n.c.hosts[0]).to(at).answeredBy("one")
	n.from("client").to(at).answeredBy("one")
	for _, from := range n.c.nodes {
		n.c.from(t, from).to(at).answeredBy("one")
	}
}

// refusedAddress: of two Services with one external IP the older one has it; the younger one is told so, and all else
// of it works. External IPs get no address of a node that nobody has annotated. What a load balancer gave the younger
// one stays the younger one's, though the older one has it as an external IP.
func refusedAddress(t *testing.T, n *namespace) {
	older := n.balances("older", 140, func(s *corev1.ServiceSpec) {
		s.ExternalIPs = append(s.ExternalIPs, texts(n.c.beyond(145))...)
	}, "one")
	younger := n.balances("younger", 145, func(s *corev1.ServiceSpec) {
		s.ExternalIPs = slices.Concat(s.ExternalIPs, texts(older.external.ips), texts(n.c.nodes[1].IPs))
	}, "two")
	want := []string{"Service " + n.name + "/older, which comes first", "an address of node " + n.c.nodes[1].Name}
	var uid types.UID
	within(t, programmed, func() error {
		o := n.c.service(t, n.name, "younger")
		uid = o.UID
		c := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionRefused)
		if c == nil || c.Status != metav1.ConditionTrue ||
			slices.ContainsFunc(want, func(s string) bool { return !strings.Contains(c.Message, s) }) {
			return fmt.Errorf("condition of the younger: %+v, want %q", c, want)
		}
		return nil
	})
	within(t, programmed, func() error {
		if events := strings.Join(n.c.eventsOf(uid), "\n"); !strings.Contains(events, "Warning "+v1.ReasonRefused) {
			return fmt.Errorf("Events of the younger: %s", events)
		}
		return nil
	})
	outside := n.c.from(t, n.c.hosts[0])
	n.c.routed(t, n.c.hosts[0], n.c.nodes[0], older.external)
	n.c.routed(t, n.c.hosts[0], n.c.nodes[0], younger.balancer)
	outside.to(older.external).answeredBy("one")
	outside.to(younger.balancer).answeredBy("two")
	outside.to(younger.on(n.c.nodes[0])).answeredBy("two")
	within(t, programmed, func() error {
		all := n.c.service(t, n.name, "older").Status.Conditions
		want := "Service " + n.name + "/younger, whose load balancer has that address"
		if c := meta.FindStatusCondition(all, v1.ConditionRefused); c == nil || !strings.Contains(c.Message, want) ||
			strings.Contains(c.Message, "which comes first") {
			return fmt.Errorf("conditions of the older: %v, want %q", all, want)
		}
		return nil
	})
	servedAlready(t, n, older, younger)
}

// servedAlready: an older Service that asks for the address of a younger one later is refused it, and told so. What it
// is told goes when it asks no more, also where somebody has emptied its managedFields.
func servedAlready(t *testing.T, n *namespace, older, younger balanced) {
	asks := func(ips ...netip.Addr) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{}}},
			"spec": map[string]any{"externalIPs": texts(ips)}})
		must(t, err)
		_, err = n.c.api.CoreV1().Services(n.name).Patch(t.Context(), older.name, mergePatch, patch,
			metav1.PatchOptions{})
		must(t, err)
	}
	says := func(want string) {
		t.Helper()
		within(t, programmed, func() error {
			c := meta.FindStatusCondition(n.c.service(t, n.name, older.name).Status.Conditions, v1.ConditionRefused)
			if c == nil && want == "" || c != nil && want != "" && strings.Contains(c.Message, want) {
				return nil
			}
			return fmt.Errorf("condition of the older: %+v, want %q", c, want)
		})
	}
	outside := n.c.from(t, n.c.hosts[0])
	n.c.routed(t, n.c.hosts[0], n.c.nodes[0], younger.external)
	outside.to(younger.external).answeredBy("two")
	asks(slices.Concat(older.external.ips, younger.external.ips)...)
	says("Service " + n.name + "/younger, which comes first")
	outside.to(younger.external).answeredBy("two")
	asks(older.external.ips...)
	says("")
}
