package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// agentAwayTimeout is for the grace that an agent has, and what it takes to move then.
const agentAwayTimeout = 2 * notReadyTimeout

// TestSilentNode: a node without power loses its addresses because it is silent, while Kubernetes still calls it Ready;
// each node in its turn, so that the leading controller's is among them. Nothing moves back.
func TestSilentNode(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes...)
	ips := c.number(48)[:1]
	e := c.egressIP(t, "silent", ips, n.itself(), metav1.LabelSelector{})
	e.ready()
	pods := []pod{{name: "a", node: c.nodes[0]}, {name: "b", node: c.nodes[1]}, {name: "c", node: c.nodes[2]}}
	n.runs(pods...)
	for range 3 {
		hosting := e.ready()[ips[0].String()]
		t.Cleanup(func() { _ = c.PowerOn(context.Background(), hosting) })
		if err := c.PowerOff(hosting); err != nil {
			t.Fatal(err)
		}
		e.tells(v1.EventMoved, "from "+hosting+" (NodeUnreachable)")
		survivor := "a"
		if n.at[survivor] == hosting {
			survivor = "b"
		}
		n.from(survivor).to(family4or6(c.outside(0), ips[0])).soonArrivesAs(ips...)
		moved := e.ready()
		c.powerOn(t, hosting)
		if after := e.ready(); !maps.Equal(moved, after) {
			t.Errorf("moved from %v to %v when %s came back", moved, after, hosting)
		}
		for _, p := range pods { // one on that node starts again after the node is Ready, with other addresses
			within(t, podsTimeout, func() error {
				if err := n.learn(p.name); err != nil {
					return err
				}
				return n.answers(p)
			})
		}
	}
}

// TestAgentStops: an agent that is restarted, or gone for a while, moves nothing.
func TestAgentStops(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	ips := c.number(49)[:1]
	e := c.egressIP(t, "agent", ips, n.itself(), metav1.LabelSelector{})
	before := e.ready()
	hosting := before[ips[0].String()]
	n.runs(pod{name: "a", node: c.nodes[0]})
	for range 3 {
		// once it is there again
		within(t, soon, func() error { return c.KillProcess(t.Context(), hosting, "egret-node") })
		n.from("a").to(family4or6(c.outside(0), ips[0])).arrivesAs(ips...)
	}
	t.Cleanup(func() { c.startAgent(t, hosting) })
	if err := c.StopProcess(t.Context(), hosting, "egret-node"); err != nil {
		t.Fatal(err)
	}
	n.from("a").to(family4or6(c.outside(0), ips[0])).arrivesAs(ips...)
	if after := e.ready(); !maps.Equal(before, after) {
		t.Errorf("moved from %v to %v when the agent stopped", before, after)
	}
	c.startAgent(t, hosting)
}

func (c *cluster) startAgent(t *testing.T, node string) {
	t.Helper()
	if err := c.StartProcess(context.Background(), node, "egret-node"); err != nil {
		t.Error(err)
	}
}

// missed waits until an address has left a node because its agent is away.
func (e egressIP) missed(node string) {
	e.t.Helper()
	within(e.t, agentAwayTimeout, func() error {
		o, err := e.get()
		if err != nil {
			return err
		}
		for _, event := range e.c.eventsOf(o.UID) {
			if strings.Contains(event, "from "+node+" (AgentAway)") {
				return nil
			}
		}
		return fmt.Errorf("nothing was moved because the agent of %s is away", node)
	})
}

// TestNodesNotAnsweringGetNothing: two egress nodes fall silent, one after the other, so that no other node answers one
// controller: the addresses have no node then, and stay without until one answers.
func TestNodesNotAnsweringGetNothing(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1], c.nodes[2])
	ips := c.number(53)
	e := c.egressIP(t, "not-answering", ips, n.itself(), metav1.LabelSelector{})
	e.ready()
	n.runs(pod{name: "a", node: c.nodes[0]})
	n.from("a").to(c.outside(0)).soonArrivesAs(ips...)
	restore := c.mute(t, c.nodes[1].Name)
	time.Sleep(3 * time.Second)
	restoreOther := c.mute(t, c.nodes[2].Name)
	within(t, notReadyTimeout, func() error {
		if o, err := e.get(); err != nil || len(o.Status.Items) > 0 {
			return fmt.Errorf("addresses of silent nodes: %v, %v; want none", o.Status.Items, err)
		}
		return nil
	})
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if o, err := e.get(); err != nil || len(o.Status.Items) > 0 {
			t.Fatalf("a silent node was given %v, %v", o.Status.Items, err)
		}
	}
	restore()
	restoreOther()
	e.ready()
	n.from("a").to(c.outside(0)).soonArrivesAs(ips...)
}

// mute has a node's host drop what controllers ask it by TCP.
func (c *cluster) mute(t *testing.T, node string) (restore func()) {
	t.Helper()
	port := 9
	if c.healthPort != 0 {
		port = c.healthPort
	}
	c.on(t, node, "nft", "add table inet mute; add chain inet mute input "+
		"{ type filter hook input priority -300 ; }; add rule inet mute input tcp dport "+fmt.Sprint(port)+" drop")
	restore = func() { _, _ = c.feed(context.Background(), node, nil, "nft", "delete table inet mute") }
	t.Cleanup(restore)
	return restore
}
