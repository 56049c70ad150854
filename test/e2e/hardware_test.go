package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHardwareAddressChanges: the uplink of the hosting node gets another hardware address, and its own again. Pods of
// the other nodes reach it through their tunnels all the time: no node holds it for dead, and its address stays.
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
		if lost := seen.lost(begin); lost.Gap > standstill {
			t.Errorf("with %s, traffic stood still: %s", mac, lost)
		}
	}
	seen.onlyFrom(n, ips)
}
