package e2e

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/test/traffic"
)

// TestStrangers: a machine on the link pretends to be thousands. What nodes learn of them is bounded, and a node's
// hypervisor is no further behind afterwards than a moment. Gateway modes do not differ in this: it runs in one.
func TestStrangers(t *testing.T) {
	const many = 1500 // each by ARP and by neighbour discovery; without a bound OVN 25.03 learns most of them
	c := theCluster(t)
	c.inOneMode(t)
	before := c.neighbours(t)
	outside := c.hosts[0]
	six := outside.IPs[slices.IndexFunc(outside.IPs, netip.Addr.Is6)]
	s := traffic.Strangers{From: net.HardwareAddr{0x02, 0x66, 0, 0, 0, 0}, About: six, Link: netip.PrefixFrom(six, 64)}
	begin := time.Now()
	must(t, s.Appear(outside, many, 1000))
	took := time.Since(begin)
	after := c.neighbours(t)
	for _, n := range c.nodes {
		c.inSync(t, n.Name)
		learned, most := after[n.Name]-before[n.Name], 2*(100+50*(1+int(took.Seconds())))
		t.Logf("%s learned %d neighbours in %s", n.Name, learned, took)
		if learned == 0 || learned > most {
			t.Errorf("%s learned %d neighbours, want 1 to %d", n.Name, learned, most)
		}
	}
}

// neighbours is how many neighbours each node's routers know.
func (c *cluster) neighbours(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, n := range c.nodes {
		rows := c.on(t, n.Name, "ovn-sbctl", "--bare", "--columns=_uuid", "list", "MAC_Binding")
		count[n.Name] = len(strings.Fields(rows))
	}
	return count
}
