package egressip_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// hosting is n1's plan when it hosts the secondary address of a dual-stack EgressIP on a link that change had a hand
// in.
func hosting(name string, change func(*world.Host)) []string {
	w := compiletest.Small("n1", world.SharedGateway)
	h := compiletest.Host("n1")
	if change != nil {
		change(h)
	}
	w.SetHost(h)
	e := compiletest.EgressIP(0, "", compiletest.SecondaryAddr(0)...)
	e.Name = name
	for _, ip := range e.IPs {
		e.Items = append(e.Items, world.Assignment{Node: "n1", IP: ip})
	}
	w.SetEgressIP(e)
	return compile.Full(w, all.Features()).Lines()
}

func has(lines []string, text string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, text) })
}

// In a VRF the table has the routes that the link has there, and replies find the pods before the VRF's own rule (1000)
// looks for them.
func TestLinkInVRF(t *testing.T) {
	lines := hosting("e0", func(h *world.Host) {
		h.Links[0].VRF = "blue"
		h.Links[0].Routes = []world.LinkRoute{{Dst: netip.MustParsePrefix("0.0.0.0/0"),
			Via: netip.MustParseAddr("172.19.1.254")}, {Dst: netip.MustParsePrefix("172.19.1.0/24")},
			{Dst: netip.MustParsePrefix("198.51.100.0/24"), Via: netip.MustParseAddr("203.0.113.1"), OnLink: true}}
	})
	for _, want := range []string{
		"route table 1003 0.0.0.0/0 dev=eth1 via=172.19.1.254", "route table 1003 172.19.1.0/24 dev=eth1",
		"route table 1003 ::/0 dev=eth1",
		"route table 1003 198.51.100.0/24 dev=eth1 via=203.0.113.1 onlink",
		"rule v4 999: to 10.244.0.0/16 fwmark 0xe000003/0xffffffff lookup 254",
		"rule v6 999: to fd00:10:244::/48 fwmark 0xe000003/0xffffffff lookup 254",
		"rule v6 6000: from fd00:10:244::/48 fwmark 0xe000003/0xffffffff lookup 1003",
		"addr eth1 fc00:f853:cce::50/128 nodad preferred_lft=0", "addr eth1 172.19.1.50/32 preferred_lft=0",
	} {
		if !has(lines, want) {
			t.Errorf("the plan has no %q", want)
		}
	}
	if has(hosting("e0", nil), " 999: to ") {
		t.Error("a link outside of VRFs has a rule at 999")
	}
}

// A link that cannot host has nothing, nor has the gateway router.
func TestLinkAtFault(t *testing.T) {
	lines := hosting("e0", func(h *world.Host) { h.Links[0].Fault = [2]string{"down", "down"} })
	for _, not := range []string{"172.19.1.50", "fwmark", "remote.v4"} {
		if has(lines, not) {
			t.Errorf("the plan speaks of %q", not)
		}
	}
}

// Names of nftables' sets and rules have a limit; those of EgressIPs have a higher one.
func TestLongNames(t *testing.T) {
	one, other := strings.Repeat("a", 200)+".one", strings.Repeat("a", 200)+".other"
	for _, name := range []string{one, other} {
		for _, l := range hosting(name, nil) {
			if kind, rest, _ := strings.Cut(l, "["); strings.HasPrefix(kind, "nft rule") &&
				strings.Index(rest, "]") > 110 {
				t.Errorf("rule's name is too long: %s", l)
			}
			if words := strings.Fields(l); strings.HasPrefix(l, "nft set ") && len(words[2]) > 110 {
				t.Errorf("set's name is too long: %s", l)
			}
		}
	}
	for _, l := range hosting(one, nil) {
		if strings.HasPrefix(l, "nft set egressip/") && slices.Contains(hosting(other, nil), l) {
			t.Errorf("two EgressIPs share %s", l)
		}
	}
}

// What a plan translates to is what its node reports, by the EgressIP's own name.
func TestTranslations(t *testing.T) {
	w := compiletest.Small("n1", world.LocalGateway)
	ips := []netip.Addr{compiletest.EgressAddr(0)[1], compiletest.SecondaryAddr(0)[0]}
	e := compiletest.EgressIP(0, "", ips...)
	e.Name = strings.Repeat("a", 200)
	e.Items = []world.Assignment{{Node: "n1", IP: ips[0]}, {Node: "n1", IP: ips[1]}}
	w.SetEgressIP(e)
	have := compile.Full(w, all.Features()).Translated
	for _, ip := range ips {
		key := plan.Egress{Object: ref.Object{Kind: ref.EgressIP, Name: e.Name}, Network: ref.DefaultNetwork, IP: ip}
		if _, ok := have.Get(key); !ok || len(have) != 2 {
			t.Errorf("have %v, want %s of %s in it", have, ip, e.Name)
		}
	}
}
