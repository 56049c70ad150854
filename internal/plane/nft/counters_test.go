package nft

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/plan"
)

// TestPackets counts what meets a rule, by the rule's name.
func TestPackets(t *testing.T) {
	p := openPlane(t)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	r := &plan.Rows{NFTChains: map[plan.NFTChain]plan.NFTChainSpec{inetChain("out"): {Type: "filter", Hook: "output",
		Priority: "filter"}}}
	plan.Add(&r.NFTRules, plan.NFTRule{Chain: inetChain("out"), Name: "untranslated 127.0.0.0/8"},
		"ip saddr 127.0.0.0/8 udp dport 9 counter drop")
	plan.Add(&r.NFTRules, plan.NFTRule{Chain: inetChain("out"), Name: "not counted"}, "ip saddr 192.0.2.1 accept")
	if err := apply(t, p, state(map[string]*plan.Rows{"a": r})); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		conn, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte("x")) // the rule refuses it
		conn.Close()
	}
	have, err := Packets(t.Context(), "out")
	if err != nil || len(have) != 1 || have["untranslated 127.0.0.0/8"] != 3 {
		t.Errorf("have %v, %v; want 3 packets of one rule", have, err)
	}
	if _, err := Packets(t.Context(), "none"); err == nil {
		t.Error("a chain that does not exist has counters")
	}
}
