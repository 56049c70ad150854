package e2e

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// reconnect is a gap in flows to a node whose hardware address changes. Where other nodes are late to hear of it, their
// BFD sessions end, and new ones begin with a packet a second (RFC 5880, 6.8.3).
const reconnect = 3 * time.Second

// TestHardwareAddressChanges: the uplink of the hosting node gets another hardware address, and its own again. Pods of
// the other nodes reach it through their tunnels, but for a moment, and the egress IP stays there. After a change that
// nobody was told of, and one back a moment later, they do so again at once.
func TestHardwareAddressChanges(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	hosting := c.nodes[2]
	c.labelEgress(t, hosting)
	ips := c.number(59)
	c.egressIP(t, "hardware", ips, n.itself(), metav1.LabelSelector{}).readyOn(hosting)
	n.runs(pod{name: "a", node: c.nodes[0], sends: true}, pod{name: "b", node: c.nodes[1], sends: true})
	seen := c.capture(t)
	own := strings.TrimSpace(c.on(t, hosting.Name, "cat", "/sys/class/net/eth0/address"))
	set := func(mac string) error {
		_, err := c.feed(context.Background(), hosting.Name, nil, "ip", "link", "set", "eth0", "address", mac)
		return err
	}
	t.Cleanup(func() { must(t, set(own)) })
	for _, mac := range []string{"02:00:00:00:59:01", "02:00:00:00:59:02", own} {
		begin := time.Now()
		must(t, set(mac))
		time.Sleep(4 * time.Second)
		if lost := seen.lost(begin); lost.Gap > reconnect {
			t.Errorf("with %s, traffic stood still: %s", mac, lost)
		}
	}
	seen.onlyFrom(n, ips)
	const untold = "02:00:00:00:59:03"
	c.changesUntold(t, hosting, untold, func() { must(t, set(untold)) })
	must(t, set(own))
	c.bridgeHas(t, hosting, own)
	outside := c.outside(0)
	t.Logf("pods leave right again after %s", within(t, soon, func() error {
		return errors.Join(n.from("a").to(outside).check(ips), n.from("b").to(outside).check(ips))
	}))
}

// changesUntold has a node's hardware address change while its agent does not run. Soon after that runs again a host
// outside, which knew the former one, reaches the node and an address that floats between nodes and is there.
func (c *cluster) changesUntold(t *testing.T, node sandbox.Member, mac string, change func()) {
	t.Helper()
	c.serveOnNodes(t)
	floating := endpoint{"a floating address of " + node.Name, c.number(58), nodePort}
	for _, ip := range floating.ips {
		c.addAddress(t, node, netip.PrefixFrom(ip, ip.BitLen()).String(), "nodad")
	}
	outside, want := c.from(t, c.hosts[0]), c.hosts[0].IPs
	reaches := func() error {
		return errors.Join(outside.to(nodeServer(node)).check(want), outside.to(floating).check(want))
	}
	within(t, soon, reaches)
	t.Cleanup(func() { c.startAgent(t, node.Name) })
	must(t, c.StopProcess(t.Context(), node.Name, "egret-node"))
	change()
	time.Sleep(3 * time.Second)
	c.startAgent(t, node.Name)
	c.bridgeHas(t, node, mac)
	t.Logf("reached after %s", within(t, soon, reaches))
}

// bridgeHas waits until a node's bridge has a hardware address, and its IPv6 addresses again.
func (c *cluster) bridgeHas(t *testing.T, node sandbox.Member, mac string) {
	t.Helper()
	within(t, soon, func() error {
		has := c.on(t, node.Name, "ip", "-br", "link", "show", "dev", "breth0")
		addresses := c.on(t, node.Name, "ip", "-br", "address", "show", "dev", "breth0")
		if !strings.Contains(has, mac) || !strings.Contains(addresses, node.IPs[1].String()+"/") {
			return errors.New("the bridge is " + has + addresses)
		}
		return nil
	})
}
