package kube_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/world"
)

// mostClaims is how many addresses one node can keep from new EgressIPs: what is read of its host-cidrs (64), of its
// primary address (2) and of its gateways (8).
const mostClaims = 64 + 2 + 8

// TestClaimsOfOneNode: whatever n3 writes of its addresses, EgressIPs that have a node go on with it, are in force as
// before, and move when that node goes. It can keep addresses from new ones, few of them, and each says whose word it
// is.
func TestClaimsOfOneNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := world.New("", compiletest.Config(world.SharedGateway))
		for _, i := range []int{1, 2} {
			w.SetNode(compiletest.Recorded(i))
		}
		placed := asks(w, 60, 4)
		hold(w, decided(w))
		before := decided(w)
		w.SetNode(drawClaims(t).node())
		asks(w, 100, 100)
		after := decided(w)
		for _, name := range placed {
			if !slices.Equal(before[name].Items, after[name].Items) || !after[name].InForce[world.V4] {
				t.Fatalf("%s: from %+v to %+v", name, before[name], after[name])
			}
		}
		checkRefused(t, after)
		w.DelNode("n1")
		after = decided(w)
		for _, name := range placed {
			if len(after[name].Items) != 1 {
				t.Fatalf("%s has no node without n1: %+v", name, after[name])
			}
		}
	})
}

// asks adds EgressIPs with an address each, from that number on.
func asks(w *world.World, from, n int) (names []string) {
	for i := from; i < from+n; i++ {
		e := compiletest.EgressIP(i, "", compiletest.V4(172, 18, 0, i))
		w.SetEgressIP(e)
		names = append(names, e.Name)
	}
	return names
}

// decided is what the controller decides, written.
func decided(w *world.World) map[string]egressip.Decision {
	assigner := egressip.NewAssigner(handover.NewPods())
	assigner.Decide(decide.View{World: w, Now: time.Unix(2000, 0)})
	all := assigner.Last()
	for name, d := range all {
		e := *w.EgressIP(name)
		e.Items, e.Leaving, e.InForce, e.Conditions = d.Items, d.Leaving, d.InForce, d.Conditions
		w.SetEgressIP(&e)
	}
	return all
}

// hold has nodes report what they are assigned.
func hold(w *world.World, all map[string]egressip.Decision) {
	holds := map[string]map[string][]netip.Addr{"n1": {}, "n2": {}}
	for name, d := range all {
		for _, i := range d.Items {
			holds[i.Node][name] = append(holds[i.Node][name], i.IP)
		}
	}
	for node, h := range holds {
		w.SetHolding(&world.Holding{Node: node, BootID: "boot-" + node, Holds: h})
	}
}

// checkRefused says that few have no node, and that each names who says that it has the address.
func checkRefused(t *rapid.T, all map[string]egressip.Decision) {
	refused := 0
	for name, d := range all {
		if len(d.Items) > 0 {
			continue
		}
		refused++
		i := slices.IndexFunc(d.Conditions, func(c world.Condition) bool { return c.Type == "Assigned" })
		if !strings.Contains(d.Conditions[i].Message, "node n3") {
			t.Fatalf("%s does not say by whose word: %+v", name, d.Conditions[i])
		}
	}
	if refused > mostClaims {
		t.Fatalf("%d EgressIPs have no node by n3's word", refused)
	}
}

// drawClaims is n3 with addresses that EgressIPs have or ask for, in annotations or by its kubelet.
func drawClaims(t *rapid.T) hostile {
	last := rapid.IntRange(60, 200)
	cidr := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("172.18.0.%d/%d", last.Draw(t, "cidr"), rapid.IntRange(8, 32).Draw(t, "length"))
	})
	address := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("172.18.0.%d", last.Draw(t, "address")) })
	h := honest()
	if rapid.Bool().Draw(t, "host-cidrs") {
		claims := rapid.SliceOfN(cidr, 0, 100).Draw(t, "cidrs")
		for i := range rapid.SampledFrom([]int{0, 100}).Draw(t, "many") {
			claims = append(claims, fmt.Sprintf("172.18.0.%d/24", 100+i))
		}
		list, _ := json.Marshal(claims)
		h.hostCIDRs = string(list)
	}
	if rapid.Bool().Draw(t, "primary") {
		h.primary = fmt.Sprintf(`{"ipv4":%q}`, cidr.Draw(t, "primary address"))
	}
	if rapid.Bool().Draw(t, "gateway") {
		hops, _ := json.Marshal(rapid.SliceOfN(address, 0, 20).Draw(t, "next hops"))
		h.gateway = fmt.Sprintf(`{"default":{"mac-address":"02:00:00:00:00:03","next-hops":%s}}`, hops)
	}
	if rapid.Bool().Draw(t, "kubelet alone") {
		h.hostCIDRs = "[]"
		h.internalIPs = strings.Join(rapid.SliceOfN(address, 0, 40).Draw(t, "internal IPs"), " ")
	}
	return h
}
