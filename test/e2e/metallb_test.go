package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

// announceTimeout bounds how long MetalLB takes to follow a label or a Service, on a busy machine.
const announceTimeout = 60 * time.Second

// The seed's address, and one of IPv6. Its network is on the nodes' link; here they are of other networks of the same
// link, to which hosts outside have a route.
var seedAddresses = []netip.Addr{netip.MustParseAddr("172.19.0.100"), netip.MustParseAddr("fc00:f853:cce::100")}

// announced is a Service whose addresses MetalLB announces from the node with a label, set up as seed egress-service.md
// has it (Usage Example), with a pod on each node. The label is Egret's to set, when there is an EgressService.
type announced struct {
	*testing.T
	c        *cluster
	n        *namespace
	s        egressService
	balancer endpoint
	answers  *answers
	bgp      bool
}

// announcedPods are they, in the nodes' order.
var announcedPods = []string{"one", "two", "three"}

// seedExample is the seed's, with two changes. MetalLB has no field nodeSelector, and refuses objects with one: it is
// nodeSelectors. The Service is what the sandbox's pods serve. Arguments: pool, addresses, label, namespace, families.
const seedExample = `
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: %[1]s, namespace: metallb-system}
spec: {addresses: [%[2]s], autoAssign: false}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: %[1]s, namespace: metallb-system}
spec:
  ipAddressPools: [%[1]s]
  nodeSelectors:
  - matchLabels: {%[3]s: ""}
---
apiVersion: v1
kind: Service
metadata:
  name: example-service
  namespace: %[4]s
  annotations: {metallb.universe.tf/address-pool: %[1]s}
spec:
  selector: {app: example}
  ipFamilyPolicy: %[5]s
  ipFamilies: [%[6]s]
  ports:
  - {name: http, protocol: TCP, port: 8080, targetPort: 8080}
  - {name: snmp, protocol: UDP, port: 161, targetPort: 8081}
  type: LoadBalancer
`

// egressServiceExample is the seed's. Argument: namespace.
const egressServiceExample = `
apiVersion: k8s.ovn.org/v1
kind: EgressService
metadata:
  name: example-service
  namespace: %s
spec:
  sourceIPBy: "LoadBalancerIP"
  nodeSelector:
    matchLabels:
      color: green
`

// bgpExample has the seed's BGPAdvertisement, and the peer that it needs. MetalLB's own BGP announces nothing of IPv6.
const bgpExample = `
apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: %[1]s, namespace: metallb-system}
spec:
  ipAddressPools: [%[1]s]
  nodeSelectors:
  - matchLabels: {%[2]s: ""}
---
apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: %[1]s, namespace: metallb-system}
spec: {myASN: 64513, peerASN: %[3]d, peerAddress: %[4]s, holdTime: 6s}
`

// announce has a pod on each node, and their Service at these addresses.
func announce(t *testing.T, ips []netip.Addr, bgp bool) announced {
	c := theBalanced(t)
	n := c.namespace(t, nil)
	a := announced{T: t, c: c, n: n, s: egressService{t, c, n.name, "example-service"},
		balancer: endpoint{"example-service", ips, podPort}, bgp: bgp}
	label := "egress-service.k8s.ovn.org/" + n.name + "-example-service"
	for i, p := range announcedPods {
		n.runs(pod{name: p, node: c.nodes[i], labels: map[string]string{"app": "example"}, sends: true})
	}
	var prefixes, families []string
	policy := "SingleStack"
	for _, ip := range ips {
		prefixes = append(prefixes, `"`+netip.PrefixFrom(ip, ip.BitLen()).String()+`"`)
		families = append(families, map[bool]string{true: "IPv4", false: "IPv6"}[ip.Is4()])
	}
	if len(ips) > 1 {
		policy = "RequireDualStack"
	}
	text := fmt.Sprintf(seedExample, n.name, strings.Join(prefixes, ", "), label, n.name, policy,
		strings.Join(families, ", "))
	if bgp {
		text += "---" + fmt.Sprintf(bgpExample, n.name, label, sandbox.RouterASN, c.hosts[0].IPs[0])
	}
	a.apply(text)
	a.answers = c.asks(t, c.hosts[1], ips)
	return a
}

// apply applies manifests as a user does, and removes their objects when the test ends.
func (a announced) apply(text string) {
	a.Helper()
	file := filepath.Join(a.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		a.Fatal(err)
	}
	a.c.kubectl(a.T, "apply", "-f", file)
	a.Cleanup(func() {
		if _, err := a.c.tryKubectl(context.Background(), "delete", "--ignore-not-found", "-f", file); err != nil {
			a.Error(err)
		}
	})
}

// paints has these nodes alone match the EgressService's selector, until the test ends: first they do, then the others
// no longer, so that there is always one.
func (a announced) paints(green ...sandbox.Member) {
	a.Helper()
	for _, node := range green {
		a.c.patchNode(a.T, node.Name, `{"metadata":{"labels":{"color":"green"}}}`)
	}
	for _, node := range a.c.nodes {
		unpaint := func() { a.c.patchNode(a.T, node.Name, `{"metadata":{"labels":{"color":null}}}`) }
		a.Cleanup(unpaint)
		if !slices.ContainsFunc(green, func(g sandbox.Member) bool { return g.Name == node.Name }) {
			unpaint()
		}
	}
}

// egresses creates the seed's EgressService.
func (a announced) egresses() { a.apply(fmt.Sprintf(egressServiceExample, a.n.name)) }

// hasAddresses waits until MetalLB has given the Service these.
func (a announced) hasAddresses() {
	a.Helper()
	within(a.T, announceTimeout, func() error {
		s, err := a.c.api.CoreV1().Services(a.n.name).Get(a.Context(), "example-service", metav1.GetOptions{})
		if err != nil {
			return err
		}
		var have []netip.Addr
		for _, i := range s.Status.LoadBalancer.Ingress {
			have = append(have, netip.MustParseAddr(i.IP))
		}
		if !slices.Equal(have, a.balancer.ips) {
			return fmt.Errorf("the Service has addresses %v, want %v", have, a.balancer.ips)
		}
		return nil
	})
}

// answeredBy waits until this node answers ARP and ND for each address, and no other; nil is nobody.
func (a announced) answeredBy(holder *sandbox.Member) {
	a.Helper()
	var want []string
	if holder != nil {
		want = []string{kube.Node(a.c.node(a.T, holder.Name)).UplinkMAC.String()}
	}
	within(a.T, announceTimeout, func() error {
		for _, ip := range a.balancer.ips {
			if have := a.answers.lately(ip); !slices.Equal(have, want) {
				return fmt.Errorf("%v answer for %s, want %v", have, ip, want)
			}
		}
		return nil
	})
}

// routedTo waits until the router has one route to the IPv4 address, by BGP and through this node; nil is none.
func (a announced) routedTo(holder *sandbox.Member) {
	a.Helper()
	if !a.bgp {
		return
	}
	var want []string
	if holder != nil {
		want = []string{holder.IPs[0].String()}
	}
	within(a.T, announceTimeout, func() error {
		have, err := a.gateways()
		if err == nil && !slices.Equal(have, want) {
			err = fmt.Errorf("%s has routes through %v, want %v", a.c.hosts[0].Name, have, want)
		}
		return err
	})
}

// gateways are the next hops of the router's route.
func (a announced) gateways() (out []string, err error) {
	text, err := a.c.feed(a.Context(), a.c.hosts[0].Name, nil, "ip", "-json", "route", "show",
		a.balancer.ips[0].String(), "proto", "bgp")
	if err != nil {
		return nil, err
	}
	type hop struct{ Gateway string }
	var routes []struct {
		hop
		Nexthops []hop
	}
	if err := json.Unmarshal([]byte(text), &routes); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	for _, r := range routes {
		for _, h := range append(r.Nexthops, r.hop) {
			if h.Gateway != "" {
				out = append(out, h.Gateway)
			}
		}
	}
	return out, nil
}

// announcedBy waits until the host is this node, and hosts outside have the way to it: by ARP and ND, and by BGP where
// there is a router.
func (a announced) announcedBy(host *sandbox.Member) {
	a.Helper()
	a.s.hostIs(host.Name, soon)
	a.answeredBy(host)
	a.routedTo(host)
}

// served says that hosts outside reach these pods, all by the Service.
func (a announced) served(hosts []sandbox.Member, pods ...string) {
	a.Helper()
	for _, host := range hosts {
		a.c.from(a.T, host).to(a.balancer).answeredBy(pods...)
	}
}

// leave says that the pods' own connections to hosts outside arrive with these addresses, in the Service's families.
func (a announced) leave(hosts []sandbox.Member, ips []netip.Addr, pods ...string) {
	a.Helper()
	for _, p := range pods {
		for _, h := range hosts {
			for _, ip := range a.balancer.ips {
				to := family4or6(endpoint{h.Name, h.IPs, sandbox.ClientIPPort}, ip)
				a.n.from(p).to(to).arrivesAs(ips...)
			}
		}
	}
}

// own are the datagrams of these pods, or of all, since a time, in the Service's families.
func (a announced) own(seen *capture, begin time.Time, pods ...string) []traffic.Sighting {
	return slices.DeleteFunc(seen.Since(begin), func(x traffic.Sighting) bool {
		name, is := strings.CutPrefix(x.Pod, a.n.name+"/")
		return !is || len(pods) > 0 && !slices.Contains(pods, name) || len(ofFamily(a.balancer.ips, x.Src)) == 0
	})
}

// leaveAsNodes says that pods soon leave with their node's address, in the Service's families.
func (a announced) leaveAsNodes() {
	a.Helper()
	for i, p := range announcedPods {
		for _, ip := range a.balancer.ips {
			a.n.from(p).to(family4or6(a.c.outside(1), ip)).formerly(a.balancer.ips...).
				soonArrivesAs(a.c.nodes[i].IPs...)
		}
	}
}

// onlyOwn says that in the Service's families no datagram of its pods was seen with another source than its addresses.
func (a announced) onlyOwn(seen *capture) {
	a.Helper()
	own := a.own(seen, time.Time{})
	if wrong := traffic.Wrong(own, "", a.balancer.ips); len(wrong) > 0 {
		a.Errorf("datagrams with a wrong source: %v; want %v", wrong, a.balancer.ips)
	}
	if a.Logf("%d datagrams seen", len(own)); len(own) == 0 {
		a.Error("the capture saw no datagram of these pods at all")
	}
	if err := seen.Complete(); err != nil {
		a.Error(err)
	}
}

// firstAnswer is how long after a time a node first answered on the link.
func (a announced) firstAnswer(node *sandbox.Member, begin time.Time) time.Duration {
	a.Helper()
	mac := kube.Node(a.c.node(a.T, node.Name)).UplinkMAC.String()
	for _, x := range a.answers.Since(begin) {
		if x.MAC == mac {
			return x.At.Sub(begin)
		}
	}
	a.Fatalf("%s has not answered", node.Name)
	return 0
}

// withoutService deletes it.
func (a announced) withoutService() {
	a.Helper()
	if err := a.c.api.CoreV1().Services(a.n.name).Delete(a.Context(), "example-service",
		metav1.DeleteOptions{}); err != nil {
		a.Fatal(err)
	}
}

// undone says that nothing is left of the EgressService: no label, so that nobody announces the Service, no policy and
// no translation. Pods leave with their node's address, and every node answers who sends the Service's packets to it.
func (a announced) undone() {
	a.Helper()
	within(a.T, soon, func() error { return a.s.labelled() })
	a.answeredBy(nil)
	within(a.T, soon, a.s.nothingLeft)
	a.leaveAsNodes()
	for _, node := range a.c.nodes {
		for _, host := range a.c.hosts {
			a.c.routed(a.T, host, node, a.balancer)
		}
		a.served(a.c.hosts, announcedPods...)
	}
}

// TestMetalLBOnLink: the Service has its addresses of the nodes' own network, in each family, only the host answers for
// them, and the pods leave with them; what moves the host moves both.
func TestMetalLBOnLink(t *testing.T) {
	c := theBalanced(t)
	a := announce(t, c.number(190), false)
	a.hasAddresses()
	a.answeredBy(nil)
	a.paints(c.nodes[1])
	a.egresses()
	asker := c.hosts[1:]
	a.announcedBy(&c.nodes[1])
	seen := c.capture(t)
	for _, i := range []int{1, 2, 0} {
		a.paints(c.nodes[i])
		a.announcedBy(&c.nodes[i])
		a.served(asker, announcedPods...)
		a.leave(asker, a.balancer.ips, announcedPods...)
	}
	a.paints(c.nodes...)
	a.s.hostIs(c.nodes[0].Name, soon)
	a.onlyOwn(seen)
	a.s.deletes()
	a.undone()
}

// example is the seed's Service, with the seed's address, or that of IPv6 in a cluster without IPv4. One host has a
// route on its link, and the other learns it by BGP: MetalLB's own BGP refuses pools with addresses of IPv6, so that
// there both hosts have one.
func example(t *testing.T) announced {
	t.Helper()
	ips := ofFamily(seedAddresses, theBalanced(t).nodes[0].IPs[0])
	return exampleAt(t, ips, ips[0].Is4())
}

func exampleAt(t *testing.T, ips []netip.Addr, bgp bool) announced {
	t.Helper()
	c := theBalanced(t)
	c.onLink(t, c.hosts[1], ips)
	if !bgp {
		c.onLink(t, c.hosts[0], ips)
	}
	a := announce(t, ips, bgp)
	a.hasAddresses()
	return a
}

// TestMetalLBExample is the seed's: one host outside learns the way by BGP, the other asks its link. Both directions
// move with the host, and end with the EgressService, or with the Service.
func TestMetalLBExample(t *testing.T) {
	a := example(t)
	c := a.c
	a.answeredBy(nil)
	a.routedTo(nil)
	a.paints(c.nodes[2])
	a.egresses()
	a.announcedBy(&c.nodes[2])
	seen := c.capture(t)
	for _, i := range []int{2, 1} {
		a.paints(c.nodes[i])
		a.announcedBy(&c.nodes[i])
		a.served(c.hosts, announcedPods...)
		a.leave(c.hosts, a.balancer.ips, announcedPods...)
	}
	a.onlyOwn(seen)
	a.withoutService()
	a.answeredBy(nil)
	a.routedTo(nil)
	within(t, soon, func() error { return a.s.labelled() })
	a.s.until("Ready", metav1.ConditionFalse, "NoService")
	a.leaveAsNodes()
}

// TestMetalLBDeletion: the EgressService goes and the Service stays.
func TestMetalLBDeletion(t *testing.T) {
	a := example(t)
	c := a.c
	a.paints(c.nodes[1])
	a.egresses()
	a.announcedBy(&c.nodes[1])
	a.leave(c.hosts, a.balancer.ips, announcedPods...)
	a.s.deletes()
	a.routedTo(nil)
	a.undone()
}

// TestMetalLBPowerOff: the host loses its power. The label, both directions and the status move together to the other
// node that matches, and stay there when the first is back. Of the time, MetalLB's own part is in the log.
func TestMetalLBPowerOff(t *testing.T) { example(t).losesHost() }

// TestMetalLBPowerOffOnLink: the same with an address in each family of the cluster, by ARP and ND alone.
func TestMetalLBPowerOffOnLink(t *testing.T) {
	c := theBalanced(t)
	c.inFullMatrix(t)
	var ips []netip.Addr
	for _, node := range c.nodes[0].IPs {
		ips = append(ips, ofFamily(seedAddresses, node)...)
	}
	exampleAt(t, ips, false).losesHost()
}

func (a announced) losesHost() {
	a.Helper()
	t, c := a.T, a.c
	from, to := &c.nodes[1], &c.nodes[2]
	a.paints(*from, *to)
	a.egresses()
	a.announcedBy(from)
	a.served(c.hosts, announcedPods...)
	seen := c.capture(t)
	seen.flowing(c, a.n, announcedPods, time.Now(), soon)
	begin := time.Now()
	c.powerOff(t, from.Name)
	moved := a.s.hostIs(to.Name, announceTimeout)
	seen.flowing(c, a.n, []string{"one", "three"}, begin.Add(moved), soon)
	a.answeredBy(to)
	link := a.firstAnswer(to, begin)
	a.routedTo(to)
	t.Logf("Egret: the pods' %s; label and status say so after %s; MetalLB: answers on the link after %s, no other "+
		"route after %s (hold time 6 s)", traffic.Lost(a.own(seen, begin.Add(-time.Second), "one", "three")),
		moved, link, time.Since(begin))
	a.served(c.hosts, "one", "three")
	a.leave(c.hosts, a.balancer.ips, "one", "three")
	c.powerOn(t, from.Name)
	a.n.awaits(pod{name: "two", node: *from})
	seen.flowing(c, a.n, announcedPods, time.Now(), soon)
	a.announcedBy(to)
	a.served(c.hosts, announcedPods...)
	a.leave(c.hosts, a.balancer.ips, announcedPods...)
	a.onlyOwn(seen)
}

// onLink lets a host find addresses on its link, until the test ends.
func (c *cluster) onLink(t *testing.T, host sandbox.Member, ips []netip.Addr) {
	t.Helper()
	for _, ip := range ips {
		route := []string{"ip", "route", "del", ip.String(), "dev", "eth0"}
		t.Cleanup(func() { _, _ = c.feed(context.Background(), host.Name, nil, route...) })
		c.on(t, host.Name, "ip", "route", "replace", ip.String(), "dev", "eth0")
	}
}
