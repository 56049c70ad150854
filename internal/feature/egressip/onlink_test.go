package egressip_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	decider "github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// TestNetworksOnLinkAreNotServed: an address on a link beside its node's primary network does not serve pods of users'
// networks. A condition says so while the EgressIP serves such pods and has such an address, and one Event when that
// begins.
func TestNetworksOnLinkAreNotServed(t *testing.T) {
	w, d := newWorld(), egressip.NewLinkChecker(handover.NewPods())
	w.FollowChanges(d.NoteChanged)
	three(w)
	link := *w.Said("n1")
	link.CIDRs = append(slices.Clone(link.CIDRs), netip.MustParsePrefix("172.19.1.2/24"))
	w.SetNode(&link)
	w.SetNamespace(&world.Namespace{Name: "own", OwnNetwork: true})
	w.SetNamespace(&world.Namespace{Name: "ns"})
	assigned := func(ip string) {
		e := object("e", 0, ip)
		e.Items = []world.Assignment{{Node: "n1", IP: addr(ip)}}
		w.SetEgressIP(e)
	}
	own := aPod("own", "p", nil)
	own.Further = []world.Interface{{Network: "blue", IPs: []netip.Addr{addr("10.128.1.2")}}}
	assigned("172.19.1.33")
	w.SetPod(aPod("ns", "p", nil))
	now := time.Unix(1e6, 0)
	for i, step := range []struct {
		change    func()
		condition bool
		events    int
	}{
		{func() {}, false, 0},
		{func() { w.SetPod(own) }, false, 0}, // its namespace has no network yet
		{func() { w.SetNetwork(&world.Network{Name: "blue", ID: 1, Namespaces: []string{"own"}}) }, true, 1},
		{func() { assigned("172.18.0.33") }, false, 0},
		{func() { assigned("172.19.1.33") }, true, 1},
		{func() { w.DelPod("own/p") }, false, 0},
		{func() { w.SetPod(own) }, true, 1},
		{func() { three(w) }, false, 0}, // n1 has no such link any more
	} {
		step.change()
		events := 0
		for range 3 { // until it is said
			desired, _ := d.Decide(decider.View{World: w, Now: now})
			for _, one := range desired {
				w.Decide(one.Kind, one.Key, one.Decision)
				events += len(one.Events)
			}
		}
		c := decider.Condition(w.EgressIP("e").Conditions, egressip.ConditionNetworksServed)
		says := c.Status == "False" && c.Reason == egressip.ReasonNetworkUnsupported &&
			strings.Contains(c.Message, "172.19.1.33 is not on the primary network of n1") &&
			strings.Contains(c.Message, "network blue")
		if says != step.condition || says != (c.Status != "") || events != step.events {
			t.Errorf("step %d: %d events, %+v", i, events, c)
		}
	}
}
