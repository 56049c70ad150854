package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
)

// TestAddressesBesideTheNodes: the uplink has a virtual address that is lower than the node's, one in its subnet, a
// deprecated IPv6 address and a temporary one, and the agent is started anew. The node's address stays the one that its
// kubelet tells, for tunnels and for pods that no egress IP serves.
func TestAddressesBesideTheNodes(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	node := c.nodes[2]
	n.runs(pod{name: "before", node: node})
	var added []string
	for _, a := range []struct{ address, how string }{
		{"172.16.0.160/32", ""}, {c.number(162)[0].String() + "/24", ""}, // as kube-vip and keepalived have them
		{"fc00:f853:cc0::160/64", "preferred_lft 0"}, {"fc00:f853:cc1::160/64", "mngtmpaddr"},
	} {
		if netip.MustParsePrefix(a.address).Addr().Is4() && !node.IPs[0].Is4() || a.how != "" &&
			!node.IPs[len(node.IPs)-1].Is6() {
			continue
		}
		c.addAddress(t, node, a.address, a.how)
		added = append(added, strings.Split(a.address, "/")[0])
	}
	told := within(t, soon, func() error { return c.publishes(t, node, added) })
	t.Logf("addresses published after %s", told.Round(time.Millisecond))
	c.startsAnew(t, node)
	n.runs(pod{name: "after", node: node}) // by the new process
	c.renewsLease(t, node)
	for _, p := range []string{"before", "after"} {
		n.from(p).to(c.outside(0)).arrivesAs(node.IPs...)
		n.from(p).to(n.pod("before")).arrivesAs(n.ips[p]...)
	}
	c.isKnownBy(t, node, node.IPs)
	must(t, c.publishes(t, node, added))
}

// renewsLease gives a node's uplink the addresses and the default route of the bridge, as a DHCP client does that
// renews a lease, and returns when the bridge alone has them again.
func (c *cluster) renewsLease(t *testing.T, node sandbox.Member) {
	t.Helper()
	for _, ip := range node.IPs {
		how := map[bool]string{true: "/16 dev eth0", false: "/64 dev eth0 nodad"}[ip.Is4()]
		c.on(t, node.Name, "sh", "-c", "ip address add "+ip.String()+how)
	}
	if way := strings.TrimSpace(c.on(t, node.Name, "ip", "-4", "route", "show", "default")); way != "" {
		// The agent may have taken the address off before, and the gateway is on no link of the device then.
		again := strings.Replace(way, "breth0", "eth0", 1) + " onlink"
		c.on(t, node.Name, "sh", "-c", "ip route replace "+again)
		t.Cleanup(func() { _, _ = c.feed(context.Background(), node.Name, nil, "sh", "-c", "ip route replace "+way) })
	}
	within(t, soon, func() error {
		out := c.on(t, node.Name, "sh", "-c", "ip -o address show dev eth0 scope global; "+
			"ip route show default dev eth0")
		if out != "" {
			return fmt.Errorf("the uplink of %s has still\n%s", node.Name, out)
		}
		return nil
	})
}

// startsAnew kills a node's agent and returns when its next process is healthy.
func (c *cluster) startsAnew(t *testing.T, node sandbox.Member) {
	t.Helper()
	pid, err := c.PidOf(t.Context(), node.Name, "egret-node")
	must(t, err)
	c.restart(t, "egret-node", node)
	within(t, soon, func() error {
		now, err := c.PidOf(t.Context(), node.Name, "egret-node")
		if err == nil && (now == 0 || now == pid) {
			err = fmt.Errorf("egret-node of %s has pid %d, and had %d", node.Name, now, pid)
		}
		if err == nil {
			_, err = fetch(t.Context(), clientIn(node.Name), url(node.IPs[0], sandbox.AgentMetricsPort, "/healthz"))
		}
		return err
	})
}

// addAddress adds one to a node's uplink until the test ends. With mngtmpaddr the kernel adds a temporary one of its
// own (RFC 8981). It does not prefer that, as use_tempaddr=2 would say for all that the host sends or, in local gateway
// mode, masquerades.
func (c *cluster) addAddress(t *testing.T, node sandbox.Member, address, how string) {
	t.Helper()
	const temporary = "net.ipv6.conf.breth0.use_tempaddr="
	c.on(t, node.Name, "sysctl", "-w", temporary+"1")
	c.on(t, node.Name, "sh", "-c", "ip address add "+address+" dev breth0 "+how)
	t.Cleanup(func() {
		_, err := c.ExecIn(context.Background(), node.Name, "ip", "address", "del", address, "dev", "breth0")
		must(t, err)
		_, err = c.ExecIn(context.Background(), node.Name, "sysctl", "-w", temporary+"0")
		must(t, err)
	})
}

// publishes is nil if a node tells the others of these addresses of its host.
func (c *cluster) publishes(t *testing.T, node sandbox.Member, addresses []string) error {
	t.Helper()
	said := texts(kube.Node(c.node(t, node.Name)).HostAddrs)
	for _, a := range addresses {
		if !slices.Contains(said, netip.MustParseAddr(a).String()) {
			return fmt.Errorf("%s of %s has %v, want %s in it", v1.AnnotationHostCIDRs, node.Name, said, a)
		}
	}
	return nil
}

// isKnownBy says that a node's primary addresses are these, to the other nodes and as the end of its tunnels.
func (c *cluster) isKnownBy(t *testing.T, node sandbox.Member, want []netip.Addr) {
	t.Helper()
	var have []netip.Addr
	for _, p := range kube.Node(c.node(t, node.Name)).Primary {
		have = append(have, p.Addr())
	}
	if !slices.Equal(have, want) {
		t.Errorf("%s of %s has %v, want %v", v1.AnnotationNodePrimaryIfaddr, node.Name, have, want)
	}
	encap := strings.TrimSpace(c.on(t, node.Name, "ovs-vsctl", "get", "Open_vSwitch", ".", "external_ids:ovn-encap-ip"))
	if strings.Trim(encap, `"`) != want[0].String() {
		t.Errorf("tunnels of %s end at %s, want %s", node.Name, encap, want[0])
	}
}
