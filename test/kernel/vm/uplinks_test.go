package vm

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
)

// TestKernelDatapathUplinks: the first node's uplink is a bond of two ports, the second one's a VLAN, as most servers
// in a rack have them.
func TestKernelDatapathUplinks(t *testing.T) {
	kernelTest(t, sandbox.Shared, uplinks, []part{
		{"Kinds", (*kernelLab).kinds},
		{"SourceAddresses", (*kernelLab).sources},
		{"NodesSeeTheNodesAddress", (*kernelLab).nodeAddresses},
		{"LocalByLink", (*kernelLab).byLink},
		{"Moves", (*kernelLab).moves},
		{"ActivePortFails", (*kernelLab).activePort},
		{"Restarts", (*kernelLab).restarts},
	})
}

// tag is the VLAN's.
const tag = "100"

// uplinks makes eth0 a link of another kind, over the one that it was, with its addresses and routes.
func uplinks(c *cluster, n sandbox.Member) {
	short := strings.TrimPrefix(n.Name, c.Options().Name+"-")
	on, fabric := "-n "+n.Name+" ", "-n "+c.FabricNetns()+" "
	c.ip(on + "link set eth0 down")
	c.ip(on + "addr flush dev eth0")
	c.ip(on + "link set eth0 name port0")
	if n.Name == c.nodes[0].Name {
		c.ip(on + "link add eth0 type bond mode active-backup miimon 50")
		c.ip(on + "link set port0 master eth0")
		c.ip(fabric + "link add " + short + "b type veth peer name port1 netns " + n.Name)
		c.ip(fabric + "link set " + short + "b master " + c.FabricBridge() + " up")
		c.ip(on + "link set port1 master eth0")
	} else {
		c.ip(on + "link add link port0 name eth0 type vlan id " + tag)
		c.ip(fabric + "link set " + short + " nomaster")
		c.ip(fabric + "link add link " + short + " name " + short + "v type vlan id " + tag)
		c.ip(fabric + "link set " + short + "v master " + c.FabricBridge() + " up")
		c.ip(on + "link set port0 up")
	}
	c.ip(on + "link set eth0 up")
	for i, ip := range n.IPs {
		subnet, options := netip.PrefixFrom(ip, []int{24, 64}[i]), []string{"", " nodad"}[i]
		c.ip(on + "addr add " + subnet.String() + " dev eth0" + options)
		c.ip(on + "route add default via " + world.Nth(subnet.Masked(), 1).String())
	}
}

// kinds are the uplinks', as the switch has them.
func (l *kernelLab) kinds() {
	for i, kind := range []string{"bond", "vlan"} {
		node := l.nodes[i].Name
		if shown := l.in(node, "ip", "-d", "link", "show", "eth0"); !strings.Contains(shown, kind) ||
			!strings.Contains(shown, "master ovs-system") {
			l.t.Errorf("the uplink of %s is no %s in the switch: %s", node, kind, shown)
		}
	}
}

// activePort: the bond's port that carries the traffic loses its link, and the other one goes on.
func (l *kernelLab) activePort() {
	w := l.watched()
	const active = "/sys/class/net/eth0/bonding/active_slave"
	node := l.nodes[0].Name
	former := strings.TrimSpace(l.in(node, "cat", active))
	l.in(node, "ip", "link", "set", former, "down")
	w.flowing()
	l.sources()
	if now := strings.TrimSpace(l.in(node, "cat", active)); now == former || now == "" {
		l.t.Errorf("the bond sends by %q, as before", now)
	}
	l.in(node, "ip", "link", "set", former, "up")
	w.close()
}
