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
)

// announceTimeout bounds how long MetalLB takes to follow a label or a Service, on a busy machine.
const announceTimeout = 60 * time.Second

// The seed's address. Its network is on the nodes' link; here it is another network of the same link, to which hosts
// outside have a route.
var seedAddress = []netip.Addr{netip.MustParseAddr("172.19.0.100")}

// announced is a Service whose addresses MetalLB announces from the node with a label, set up as seed egress-service.md
// has it (Usage Example). The label is Egret's to set; here the test does.
type announced struct {
	*testing.T
	c        *cluster
	n        *namespace
	label    string
	balancer endpoint
	answers  *answers
}

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

// announce has pods on the first two nodes, and their Service at these addresses.
func announce(t *testing.T, ips []netip.Addr, bgp bool) announced {
	c := theBalanced(t)
	n := c.namespace(t, nil)
	a := announced{T: t, c: c, n: n, label: "egress-service.k8s.ovn.org/" + n.name + "-example-service",
		balancer: endpoint{"example-service", ips, podPort}}
	labels := map[string]string{"app": "example"}
	n.runs(pod{name: "one", node: c.nodes[0], labels: labels}, pod{name: "two", node: c.nodes[1], labels: labels})
	var prefixes, families []string
	policy := "SingleStack"
	for _, ip := range ips {
		prefixes = append(prefixes, `"`+netip.PrefixFrom(ip, ip.BitLen()).String()+`"`)
		families = append(families, map[bool]string{true: "IPv4", false: "IPv6"}[ip.Is4()])
	}
	if len(ips) > 1 {
		policy = "RequireDualStack"
	}
	text := fmt.Sprintf(seedExample, n.name, strings.Join(prefixes, ", "), a.label, n.name, policy,
		strings.Join(families, ", "))
	if bgp {
		text += "---" + fmt.Sprintf(bgpExample, n.name, a.label, sandbox.RouterASN, c.hosts[0].IPs[0])
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

// labels moves the label: to this node alone, or to none.
func (a announced) labels(holder *sandbox.Member) {
	a.Helper()
	for _, node := range a.c.nodes {
		value := "null"
		if holder != nil && holder.Name == node.Name {
			value = `""`
		}
		a.c.patchNode(a.T, node.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, a.label, value))
	}
}

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

// routedTo waits until the router has one route to the address, by BGP and through this node; nil is none.
func (a announced) routedTo(holder *sandbox.Member) {
	a.Helper()
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

// TestMetalLBOnLink: the Service has its addresses of the nodes' own network, only the node with the label answers for
// them, and what moves the label moves that.
func TestMetalLBOnLink(t *testing.T) {
	c := theBalanced(t)
	a := announce(t, c.number(190), false)
	a.hasAddresses()
	a.answeredBy(nil)
	for _, i := range []int{1, 2} { // the last has no endpoint
		a.labels(&c.nodes[i])
		a.answeredBy(&c.nodes[i])
		c.from(t, c.hosts[1]).to(a.balancer).answeredBy("one", "two")
	}
	a.labels(nil)
	a.answeredBy(nil)
	a.labels(&c.nodes[0])
	a.answeredBy(&c.nodes[0])
	a.withoutService()
	a.answeredBy(nil)
}

// example is the seed's Service, with the seed's address, to which one host has a route on its link.
func example(t *testing.T) announced {
	t.Helper()
	c := theBalanced(t)
	if !c.nodes[0].IPs[0].Is4() {
		t.Skip("the seed's address is of IPv4: EGRET_E2E_FAMILY=dual or ipv4")
	}
	c.onLink(t, c.hosts[1], seedAddress)
	a := announce(t, seedAddress, true)
	a.hasAddresses()
	return a
}

// served says that all hosts outside reach both pods.
func (a announced) served() {
	a.Helper()
	for _, host := range a.c.hosts {
		a.c.from(a.T, host).to(a.balancer).answeredBy("one", "two")
	}
}

// TestMetalLBExample is the seed's: one host outside learns the way by BGP, the other asks its link.
func TestMetalLBExample(t *testing.T) {
	a := example(t)
	c := a.c
	a.answeredBy(nil)
	a.routedTo(nil)
	for _, i := range []int{2, 1} {
		a.labels(&c.nodes[i])
		a.answeredBy(&c.nodes[i])
		a.routedTo(&c.nodes[i])
		a.served()
	}
	a.labels(nil)
	a.answeredBy(nil)
	a.routedTo(nil)
	a.labels(&c.nodes[0])
	a.routedTo(&c.nodes[0])
	a.withoutService()
	a.answeredBy(nil)
	a.routedTo(nil)
}

// TestMetalLBPowerOff: the node with the label loses its power, and the label moves, as Egret moves it. Both hosts then
// come in by the other node; MetalLB's own part of the time is in the log.
func TestMetalLBPowerOff(t *testing.T) {
	a := example(t)
	c := a.c
	from, to := &c.nodes[2], &c.nodes[1]
	a.labels(from)
	a.answeredBy(from)
	a.routedTo(from)
	c.powerOff(t, from.Name)
	begin := time.Now()
	a.labels(to)
	a.routedTo(to)
	routed := time.Since(begin)
	a.answeredBy(to)
	first := a.answers.Since(begin)[0].At.Sub(begin)
	t.Logf("MetalLB: answers on the link %s after the label moved; no other route after %s (hold time 6 s)", first, routed)
	a.served()
	c.powerOn(t, from.Name)
	a.answeredBy(to)
	a.routedTo(to)
}

func (a announced) withoutService() {
	a.Helper()
	if err := a.c.api.CoreV1().Services(a.n.name).Delete(a.Context(), "example-service",
		metav1.DeleteOptions{}); err != nil {
		a.Fatal(err)
	}
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
