package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestControllersDoNotHearEachOther: the tunnel between the two nodes that run controllers is cut, and nothing else, so
// that each holds the other's node for dead. One of them leads all the time, and where the addresses are after a moment
// they stay: pods of the third node, which hears both, go on. The tunnel comes back, and nothing moves.
func TestControllersDoNotHearEachOther(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[0], c.nodes[1])
	ips := c.number(58)
	e := c.egressIP(t, "two-leaders", ips, n.itself(), metav1.LabelSelector{})
	e.ready()
	n.runs(pod{name: "third", node: c.nodes[2], sends: true})
	seen := c.capture(t)
	lease := c.transitions(t)
	heal := c.cutTunnel(t, c.nodes[0], c.nodes[1])
	within(t, soon, func() error {
		if c.transitions(t) == lease {
			return errors.New("the node of the controller that leads is not held for dead")
		}
		return nil
	})
	time.Sleep(5 * time.Second)
	begin, before, items := time.Now(), c.transitions(t), e.items()
	time.Sleep(10 * time.Second)
	if after := c.transitions(t); after != before {
		t.Errorf("the controllers' lease changed hands %d times in 10 s", after-before)
	}
	if now := e.items(); !maps.Equal(items, now) {
		t.Errorf("addresses moved from %v to %v", items, now)
	}
	if lost := seen.lost(begin); lost.Gap > standstill {
		t.Errorf("the third node's pod stood still: %s", lost)
	}
	seen.onlyFrom(n, ips)
	heal()
	c.sessionsUp(t, c.nodes[0].Name, 2)
	if now := e.items(); !maps.Equal(items, now) {
		t.Errorf("with the tunnel back, addresses moved from %v to %v", items, now)
	}
}

// items are the nodes that the status names, by address.
func (e egressIP) items() map[string]string {
	e.t.Helper()
	o, err := e.get()
	must(e.t, err)
	at := map[string]string{}
	for _, item := range o.Status.Items {
		at[item.EgressIP] = item.Node
	}
	return at
}

// cutTunnel drops what two nodes send each other through their tunnel, until heal or the end of the test.
func (c *cluster) cutTunnel(t *testing.T, a, b sandbox.Member) (heal func()) {
	t.Helper()
	const table = "bridge e2e_tunnel"
	drop := fmt.Sprintf("ip saddr %[1]s ip daddr %[2]s udp dport 6081 drop; ip saddr %[2]s ip daddr %[1]s udp dport "+
		"6081 drop", a.IPs[0], b.IPs[0])
	nft := func(script string) error {
		return sandbox.InNetns(c.FabricNetns(), func() error {
			cmd := exec.Command("nft", "-f", "-")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", script, err, out)
			}
			return nil
		})
	}
	heal = func() { must(t, nft("table "+table+"\ndelete table "+table)) }
	t.Cleanup(heal)
	must(t, nft("table "+table+" { chain forward { type filter hook forward priority 0; "+drop+"; }; }"))
	return heal
}

// transitions is how often the controllers' lease has changed hands.
func (c *cluster) transitions(t *testing.T) int {
	t.Helper()
	l, err := c.api.CoordinationV1().Leases("egret-system").Get(t.Context(), "egret-controller", metav1.GetOptions{})
	must(t, err)
	if l.Spec.LeaseTransitions == nil {
		return 0
	}
	return int(*l.Spec.LeaseTransitions)
}
