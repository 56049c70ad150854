package egressip_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	decider "github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// said is a decider's condition of e0, "" for none, and its Events, as texts.
func said(d *egressip.Selector, w *world.World) (condition, events string) {
	desired, _ := d.Decide(decider.View{World: w, Now: time.Unix(2_000_000, 0)})
	for _, one := range desired {
		if one.Key != "e0" {
			continue
		}
		w.Decide(world.KindEgressIP, "e0", one.Decision)
		for _, e := range one.Events {
			events += e.Reason + ": " + e.Message + "\n"
		}
	}
	for _, c := range w.EgressIP("e0").Conditions {
		condition += c.Status + " " + c.Reason + ": " + c.Message
	}
	return condition, events
}

// TestNetworksAreTold: the condition counts the networks that are in force, and Events tell of those that a change
// took, and of what is the matter with any, once.
func TestNetworksAreTold(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	d := egressip.NewSelector()
	w.FollowChanges(d.NoteChanged)
	selective := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	selective.Traffic = compiletest.TrafficSelector("a")
	garbled := compiletest.Traffic(1, "a", "172.22.0.0/16")
	garbled.Problems = []string{`spec.destinationNetworks[1]: "web" is not a network`}
	unread := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	unread.TrafficProblem, unread.TrafficUnknown = "mend it", true
	everywhere := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	for _, x := range []struct {
		change            func()
		condition, events string
	}{
		{func() { w.SetEgressIP(everywhere) }, "", ""},
		{func() { w.SetEgressIP(selective) }, "False NoNetworks: ",
			"NetworksRemoved: spec.trafficSelector no longer selects what the selected EgressIPTraffics do not name: "},
		{func() {
			w.SetTraffic(compiletest.Traffic(0, "a", "172.20.0.0/16", "fd00:20::/64"))
		},
			"True NetworksSelected: spec.trafficSelector selects 1 IPv4 network and 1 IPv6 network, of 1 " +
				"EgressIPTraffic; over IPv4 and IPv6 it is not in force: ", ""},
		{func() { w.SetTraffic(garbled) }, `EgressIPTraffic t1: spec.destinationNetworks[1]: "web"`,
			`TrafficProblem: EgressIPTraffic t1: spec.destinationNetworks[1]: "web"`},
		{func() {}, `EgressIPTraffic t1: spec.destinationNetworks[1]: "web"`, ""},
		{func() { w.SetTraffic(compiletest.Traffic(0, "a", "172.20.0.0/17")) }, "True ",
			"no longer selects 172.20.128.0/17, fd00:20::/64: selected pods leave there with their node's address, " +
				"unless another EgressIP serves them"},
		{func() { w.SetTraffic(compiletest.Traffic(0, "a", "172.20.0.0/15")) }, "True ", ""},
		{func() { w.SetEgressIP(unread) }, "False InvalidSelector: mend it", ""},
		{func() { w.SetEgressIP(selective) }, "True ", ""},
		{func() { w.SetTraffic(compiletest.Traffic(1, "b", "172.22.0.0/16")) }, "True ",
			"no longer selects 172.22.0.0/16: "},
		{func() { w.SetTraffic(compiletest.Traffic(2, "a", "10.96.0.0/24")) },
			"the networks have addresses of the service subnet 10.96.0.0/16", "TrafficProblem: "},
		{func() { w.SetTraffic(compiletest.Traffic(2, "a", "172.18.0.0/28")) },
			"the networks have addresses of nodes (n1, n2, n3)", "TrafficProblem: "},
		{func() { w.SetTraffic(tooMany()) },
			"False TooManyNetworks: spec.trafficSelector selects ",
			"TrafficProblem: EgressIPTraffic t3: with its 20000 networks it would be more than 20000 in all: it does not count"},
		{func() { w.DelTraffic("t3") }, "True NetworksSelected", ""},
		{func() { w.SetEgressIP(everywhere) }, "", ""},
	} {
		x.change()
		condition, events := said(d, w)
		if !strings.Contains(condition, x.condition) || x.condition == "" && condition != "" {
			t.Errorf("condition %q, want %q", condition, x.condition)
		}
		if !strings.Contains(events, x.events) || x.events == "" && events != "" {
			t.Errorf("with condition %q: Events %q, want %q", condition, events, x.events)
		}
	}
}

// tooMany is younger than others.
func tooMany() *world.Traffic {
	o := compiletest.Traffic(3, "a")
	o.Created = time.Unix(1, 0)
	for i := range world.MaxNetworks {
		o.Networks = append(o.Networks, netip.PrefixFrom(compiletest.V4(30, i>>8, i&255, 0), 32))
	}
	return o
}

// TestNetworksOfNoUse: the condition says of each family what becomes of its networks, and Events tell of none that
// were of no use, nor of what no EgressIPTraffic has lost.
func TestNetworksOfNoUse(t *testing.T) {
	const (
		two  = "spec.trafficSelector selects 1 IPv4 network and 1 IPv6 network, of 1 EgressIPTraffic"
		no6  = "; it has no IPv6 address: it serves no pod over IPv6"
		wait = "; over IPv4 it is not in force: condition InForce says what selected pods leave with"
	)
	w := compiletest.Small("", world.SharedGateway)
	d := egressip.NewSelector()
	w.FollowChanges(d.NoteChanged)
	w.SetTraffic(compiletest.Traffic(0, "a", "172.20.0.100/31", "fd00:20::/64"))
	changed := func(change func(*world.EgressIP)) func() {
		return func() {
			e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)[0])
			e.Traffic, e.InForce = compiletest.TrafficSelector("a"), [2]bool{world.V4: true}
			change(e)
			w.SetEgressIP(e)
		}
	}
	networks := func(networks ...string) func() {
		return func() { w.SetTraffic(compiletest.Traffic(0, "a", networks...)) }
	}
	for _, x := range []struct {
		name              string
		change            func()
		condition, events string
	}{
		{"in force", changed(func(*world.EgressIP) {}), "True NetworksSelected: " + two +
			": over IPv4 selected pods leave there with an egress IP or not at all" + no6, ""},
		{"in fallback", changed(func(e *world.EgressIP) { e.InForce[world.V4] = false }), "True NetworksSelected: " +
			two + wait + no6, ""},
		{"drops", changed(func(e *world.EgressIP) { e.InForce[world.V4], e.DropWhenUnassigned = false, true }),
			"True NetworksSelected: " + two + ": over IPv4 selected pods leave there with an egress IP or not at all" +
				no6, ""},
		{"half of a network", networks("172.20.0.100/32"), "", "NetworksRemoved: spec.trafficSelector no longer " +
			"selects 172.20.0.101/32: selected pods leave there with their node's address, unless another EgressIP " +
			"serves them\n"},
		{"nothing of its families", networks("fd00:20::/64"), "False NoNetworks: " +
			"spec.trafficSelector selects 1 IPv6 network, of 1 EgressIPTraffic" + no6, "NetworksRemoved: " +
			"spec.trafficSelector no longer selects 172.20.0.100/32: "},
		{"nothing", networks(), "False NoNetworks: spec.trafficSelector selects 1 EgressIPTraffic, without networks: " +
			"it serves no pod", ""},
	} {
		x.change()
		condition, events := said(d, w)
		if !strings.Contains(condition, x.condition) {
			t.Errorf("%s: condition %q, want %q", x.name, condition, x.condition)
		}
		if !strings.Contains(events, x.events) || x.events == "" && events != "" {
			t.Errorf("%s: Events %q, want %q", x.name, events, x.events)
		}
	}
}

// TestNodeGetsItsAddressBack: of networks with a node's address people are told when that address is the node's again,
// which an EgressIP's status gave to another node, and not when it is given away again.
func TestNodeGetsItsAddressBack(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	selective, other := compiletest.EgressIP(0, ""), compiletest.EgressIP(1, "", compiletest.Primary(3))
	selective.Traffic = compiletest.TrafficSelector("a")
	placed := *other
	placed.Items = []world.Assignment{{Node: "n2", IP: compiletest.Primary(3)}}
	w.SetEgressIP(selective)
	w.SetTraffic(compiletest.Traffic(0, "a", "172.18.0.0/28"))
	d := egressip.NewSelector()
	w.FollowChanges(d.NoteChanged)
	for _, x := range []struct {
		e             *world.EgressIP
		nodes, events string
	}{{&placed, "(n1, n2)", "(n1, n2)"}, {other, "(n1, n2, n3)", "(n1, n2, n3)"}, {&placed, "(n1, n2)", ""}} {
		w.SetEgressIP(x.e)
		condition, events := said(d, w)
		if !strings.Contains(condition, x.nodes) || !strings.Contains(events, x.events) ||
			x.events == "" && events != "" {
			t.Errorf("condition %q and Events %q, want %q and %q", condition, events, x.nodes, x.events)
		}
	}
}

// TestWhatGetsBetterIsNoNews: of networks with nodes' addresses people are told when a further node has one of them,
// and not when one has gone; of a range of the cluster's, when it is a further one. The words of the others change with
// it.
func TestWhatGetsBetterIsNoNews(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	d := egressip.NewSelector()
	w.FollowChanges(d.NoteChanged)
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	e.Traffic = compiletest.TrafficSelector("a")
	w.SetEgressIP(e)
	networks := func(list ...string) func() {
		return func() { w.SetTraffic(compiletest.Traffic(0, "a", list...)) }
	}
	for i, x := range []struct {
		change            func()
		condition, events string
	}{
		{networks("172.18.0.0/28"), "of nodes (n1, n2, n3)", "of nodes (n1, n2, n3)"},
		{func() { w.DelNode("n3") }, "of nodes (n1, n2)", ""},
		{func() { w.SetNode(compiletest.Node(3)) }, "(n1, n2, n3)", "(n1, n2, n3)"},
		{networks("10.0.0.0/8"), "the pod subnet 10.244.0.0/16 and of the service subnet", "of the pod subnet"},
		{networks("10.96.0.0/24"), "addresses of the service subnet", ""},
	} {
		x.change()
		condition, events := said(d, w)
		if !strings.Contains(condition, x.condition) || !strings.Contains(events, x.events) ||
			x.events == "" && events != "" && !strings.HasPrefix(events, "NetworksRemoved") ||
			strings.Count(events, "TrafficProblem") > 1 {
			t.Errorf("%d: condition %q and Events %q, want %q and %q", i, condition, events, x.condition, x.events)
		}
	}
}

// TestNextLeaderTellsNothingAnew: what the condition says, a former leader has told.
func TestNextLeaderTellsNothingAnew(t *testing.T) {
	w := compiletest.Small("", world.SharedGateway)
	e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
	e.Traffic = compiletest.TrafficSelector("a")
	w.SetEgressIP(e)
	w.SetTraffic(compiletest.Traffic(0, "a", "10.96.0.0/24"))
	if _, events := said(egressip.NewSelector(), w); !strings.Contains(events, "TrafficProblem") {
		t.Errorf("the first tells %q", events)
	}
	if _, events := said(egressip.NewSelector(), w); events != "" {
		t.Errorf("the next tells %q", events)
	}
}

// TestRowsDoNotGrow: a thousand networks and as many pods are members of sets and no rows.
func TestRowsDoNotGrow(t *testing.T) {
	few, many := rowsWith(t, 2, 1), rowsWith(t, 1000, 1000)
	if few != many {
		t.Errorf("%d rows, and %d with 1000 pods and 1000 networks", few, many)
	}
}

// rowsWith counts rows of OVN, and rules, of node n1 that hosts an address on either network for pods of its own and of
// four other nodes.
func rowsWith(t *testing.T, pods, networks int) int {
	t.Helper()
	w := compiletest.Small("n1", world.LocalGateway)
	w.SetNamespace(&world.Namespace{Name: "ns0"})
	var list []netip.Prefix
	for i := range networks {
		list = append(list, netip.PrefixFrom(compiletest.V4(20, i>>6, i<<2&255, 0), 24))
	}
	for i, ip := range []netip.Addr{compiletest.EgressAddr(0)[0], compiletest.SecondaryAddr(0)[0]} {
		e := compiletest.EgressIP(i, []string{"app=web", "app=db"}[i], ip)
		e.Traffic, e.InForce = compiletest.TrafficSelector("a"), [2]bool{true, false}
		e.Items = []world.Assignment{{Node: "n1", IP: ip}}
		w.SetEgressIP(e)
	}
	o := compiletest.Traffic(0, "a")
	o.Networks = destinations.Of(list...)
	w.SetTraffic(o)
	for i := 1; i <= 5; i++ {
		w.SetNode(compiletest.Node(i))
	}
	for i := range pods {
		p := compiletest.Pod(i%2, fmt.Sprint("n", 1+i/200))
		p.Namespace, p.Name, p.IPs = "ns0", fmt.Sprint("p", i), []netip.Addr{compiletest.V4(10, 244, 1+i/200, 3+i%200)}
		w.SetPod(p)
	}
	s := compile.Full(w, all.Features())
	if len(s.Sources) != pods {
		t.Fatalf("%d pods are translated, want %d", len(s.Sources), pods)
	}
	return len(s.NB) + len(s.NFTRules) + len(s.NFTSets) + len(s.Flows) + len(s.Rules) + len(s.Routes)
}
