package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	says "github.com/egret-net/egret/internal/plane/announce"
	"github.com/egret-net/egret/internal/sandbox"
)

// further is a test with an EgressIP that selects a pod on each node.
type further struct {
	*testing.T
	c   *cluster
	n   *namespace
	ips []netip.Addr
}

// TestFurtherAddresses: selected pods reach another node's virtual address, and its address on a second link, with
// their node's address, wherever the virtual address moves. It is a host's outside in the end, and is reached with the
// egress IP.
func TestFurtherAddresses(t *testing.T) {
	c := theCluster(t)
	f := further{t, c, c.namespace(t, nil), c.number(164)}
	c.labelEgress(t, c.nodes[1])
	for i, p := range secondPods {
		f.n.runs(pod{name: p, node: c.nodes[i], labels: web})
	}
	c.egressIP(t, f.n.name, f.ips, f.n.itself(), selects(web)).readyOn(c.nodes[1])
	c.serveOnNodes(t)
	for _, m := range c.nodes {
		f.routes(m)
		f.reach(m, endpoint{link + " of " + m.Name, m.Secondary[0], nodePort}, f.byLink)
	}
	vip := endpoint{"the virtual address", c.number(165), nodePort}
	for _, m := range c.nodes[1:] {
		take := f.give(m.Name, "breth0", vip.ips)
		f.reach(m, vip, func(i int) []netip.Addr { return c.nodes[i].IPs })
		take()
	}
	f.give(c.hosts[0].Name, "eth0", vip.ips)
	vip.port = sandbox.ClientIPPort
	for i, p := range secondPods {
		f.n.from(p).to(vip).formerly(concat(c.nodes[i].IPs, f.n.ips[p])...).soonArrivesAs(f.ips...)
	}
}

// routes has the nodes' gateway lead to a node's addresses on its second link, as a router of both networks does.
func (f further) routes(m sandbox.Member) {
	f.Helper()
	ip := func(ctx context.Context, command string) {
		f.Helper()
		if out, err := exec.CommandContext(ctx, "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			f.Fatalf("ip %s: %v\n%s", command, err, out)
		}
	}
	for i, to := range m.Secondary[0] {
		forward := map[bool]string{true: "net.ipv4.ip_forward", false: "net.ipv6.conf.all.forwarding"}[to.Is4()]
		ip(f.Context(), "netns exec "+f.c.FabricNetns()+" sysctl -qw "+forward+"=1")
		way := fmt.Sprintf("%s via %s", netip.PrefixFrom(to, to.BitLen()), m.IPs[i])
		ip(f.Context(), "-n "+f.c.FabricNetns()+" route replace "+way)
		f.Cleanup(func() { ip(context.Background(), "-n "+f.c.FabricNetns()+" route del "+way) })
	}
}

// byLink is the address of a pod's node that other nodes see on the second link: hosts that have a route by it take it.
func (f further) byLink(pod int) []netip.Addr {
	if f.c.Options().GatewayMode == sandbox.Local {
		return f.c.nodes[pod].Secondary[0]
	}
	return f.c.nodes[pod].IPs
}

// reach says that pods reach what a node has with their node's address, and those of the node with their own.
func (f further) reach(at sandbox.Member, to endpoint, asNode func(pod int) []netip.Addr) {
	f.Helper()
	for i, p := range secondPods {
		want := asNode(i)
		if f.c.nodes[i].Name == at.Name {
			want = f.n.ips[p]
		}
		before := concat(f.ips, f.c.nodes[i].IPs, f.n.ips[p]) // of the node that had it, or of nobody
		f.n.from(p).to(to).formerly(before...).soonArrivesAs(want...)
		f.n.from(p).to(to).arrivesAs(want...)
	}
}

// give adds addresses to a link, and announces them, as keepalived does; it returns what removes them.
func (f further) give(to, dev string, ips []netip.Addr) (take func()) {
	f.Helper()
	var remove []func()
	for _, ip := range ips {
		single := netip.PrefixFrom(ip, ip.BitLen()).String()
		f.c.on(f.T, to, "sh", "-c", "ip address add "+single+" dev "+dev+map[bool]string{false: " nodad"}[ip.Is4()])
		del := func() { _, _ = f.c.feed(context.Background(), to, nil, "ip", "address", "del", single, "dev", dev) }
		f.Cleanup(del)
		remove = append(remove, del)
		must(f.T, sandbox.InNetns(to, func() error {
			l, err := net.InterfaceByName(dev)
			if err != nil {
				return err
			}
			return says.Links{}.Send(plan.Announcement{Dev: dev, IP: ip, MAC: l.HardwareAddr.String()})
		}))
	}
	return func() {
		for _, del := range remove {
			del()
		}
	}
}
