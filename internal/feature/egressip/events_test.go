package egressip_test

import (
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// told are the reasons of a decision's Events that are Warnings.
func told(d egressip.Decision) string {
	var out []string
	for _, e := range d.Events {
		if e.Warning {
			out = append(out, e.Reason)
		}
	}
	return strings.Join(out, " ")
}

// A refusal is told of once for an address and a reason: the condition's words follow what becomes of nodes, networks and pods, without an Event.
func TestRefusalIsToldOnceForItsReason(t *testing.T) {
	w := newWorld()
	w.SetNode(node("n1", 2, "172.18.0.2/24"))
	w.SetEgressIP(object("e", 0, "172.18.0.33"))
	w.SetEgressIP(object("pod", 0, "10.244.1.6"))
	settle(w)
	lost := node("n1", 2, "172.18.0.2/24")
	lost.Ready = false
	for _, x := range []struct {
		change     func()
		name, says string
		told       string
	}{
		{func() { w.SetUnreachable("n1", world.NodeUnreachable) }, "e", "172.18.0.33 now (n1 NodeUnreachable)", "NoMatchingNodeFound FellBack"},
		{func() { w.SetNode(lost) }, "e", "172.18.0.33 now (n1 NodeNotReady)", ""},
		{func() { w.DelNode("n1") }, "e", "172.18.0.33 now: label a node", ""},
		{func() { w.SetNode(node("n2", 3, "172.19.0.3/24")) }, "e", "172.18.0.33: it is in no egress node's network (172.19.0.0/24)", "NoMatchingNodeFound"},
		{func() { w.SetNode(node("n3", 4, "172.20.0.3/24")) }, "e", "(172.19.0.0/24, 172.20.0.0/24)", ""},
		{func() { w.SetEgressIP(with(w.EgressIP("e"), "172.18.0.33", "172.18.0.3")) }, "e", "172.18.0.3: it is", "NoMatchingNodeFound"},
		{func() { w.SetPod(&world.Pod{Namespace: "ns", Name: "a", IPs: object("", 0, "10.244.1.6").IPs}) }, "pod", "is the address of pod ns/a", ""},
		{func() { w.DelPod("ns/a") }, "pod", "is in the cluster's pod subnet", ""},
	} {
		x.change()
		d := settle(w)[x.name]
		if c := conditionOf(d, egressip.ConditionAssigned); !strings.Contains(c.Message, x.says) {
			t.Errorf("have %q, want %q in it", c.Message, x.says)
		}
		if have := told(d); have != x.told {
			t.Errorf("%s: told %q, want %q", x.says, have, x.told)
		}
	}
}

// with is an EgressIP with other addresses.
func with(e *world.EgressIP, ips ...string) *world.EgressIP {
	n := *e
	n.IPs = object("", 0, ips...).IPs
	return &n
}
