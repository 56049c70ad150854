package e2e

import (
	"fmt"
	"net/netip"
	"testing"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// TestTrafficWorkflow is the workflow of seed egress-ip-per-destination.md. An egress node has two networks more, by
// two links. The same pods have an egress IP of each network to what is in it, and their node's address elsewhere.
func TestTrafficWorkflow(t *testing.T) {
	b := newByDestination(t)
	var all []egressIP
	var ips [][]netip.Addr
	for i, name := range []string{"health", "work"} {
		label := b.n.name + "-" + name
		ips = append(ips, numbered(b.c.nodes[0].Secondary[i], 187))
		var networks []v1.CIDR
		for _, ip := range b.c.hosts[0].Secondary[i] {
			networks = append(networks, v1.CIDR(prefixed(ip).Masked().String()))
		}
		b.traffic(label, label, networks...)
		all = append(all, b.egressIP(name, label, ips[i]))
	}
	for _, host := range []int{0, 1} {
		b.leaveByLink(host, 0, ips[0])
		b.leaveByLink(host, 1, ips[1])
	}
	b.leave(health, nil)
	b.leave(work, nil)
	all[0].delete()
	b.leave(health, nil)
	b.leaveByLink(0, 1, ips[1])
}

// leaveByLink says that pods arrive at a host's address in a secondary network with these.
func (b byDestination) leaveByLink(host, network int, ips []netip.Addr) {
	b.Helper()
	m := b.c.hosts[host]
	to := endpoint{fmt.Sprint(m.Name, " in secondary network ", network), m.Secondary[network], sandbox.ClientIPPort}
	for _, p := range trafficPods {
		b.n.from(p).to(to).soonArrivesAs(ips...)
	}
}

// TestTrafficWide: networks that hold all addresses, written as one or in halves, or those of the cluster among others,
// are what is outside in them. What stays inside is as without an EgressIP.
func TestTrafficWide(t *testing.T) {
	b := newByDestination(t)
	b.c.serveOnNodes(t)
	b.n.runs(pod{name: "db", node: b.c.nodes[0], labels: db})
	service := b.n.serves("inside", db)
	ips, label := b.c.number(239), b.n.name+"-wide"
	b.traffic(label, label, "0.0.0.0/0", "::/0")
	b.egressIP("wide", label, ips)
	b.wide(ips, service)
	b.patchTraffic(label, `{"spec":{"destinationNetworks":["0.0.0.0/1","128.0.0.0/1","::/1","8000::/1"]}}`)
	b.wide(ips, service)
	b.patchTraffic(label, `{"spec":{"destinationNetworks":["10.0.0.0/8","172.16.0.0/12","fc00::/7"]}}`)
	b.wide(ips, service)
	b.patchTraffic(label, `{"spec":{"destinationNetworks":["10.0.0.0/8","fd00::/16"]}}`)
	b.leave(health, nil, ips...)
	b.inside(service)
}

// wide says that pods leave with these addresses to all hosts outside, and that what stays inside does not.
func (b byDestination) wide(ips []netip.Addr, service endpoint) {
	b.Helper()
	b.leave(health, ips)
	b.leave(work, ips)
	b.inside(service)
}

// inside says that pods, nodes, Services and the API server see the pods as they are.
func (b byDestination) inside(service endpoint) {
	b.Helper()
	near, far := trafficPods[0], trafficPods[1]
	b.n.from(near).to(b.n.pod(far)).arrivesAs(b.n.ips[near]...)
	b.n.from(near).to(nodeServer(b.c.nodes[1])).arrivesAs(b.n.ips[near]...)
	b.n.from(far).to(nodeServer(b.c.nodes[0])).arrivesAs(b.c.nodes[2].IPs...)
	b.n.from(near).to(service).soonArrivesAs(b.n.ips[near]...)
	if out := b.n.in(near, "curl -sS --max-time 3 -k -o /dev/null -w '%{http_code}' "+
		"https://kubernetes.default.svc/version"); out != "200" {
		b.Errorf("pod %s to the API server's Service: status %q, want 200", near, out)
	}
}
