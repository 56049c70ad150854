package forward

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestDropping: chains that drop by their policy or by their last rule are named, those that know the device, or that
// are not of forwarding, are not; nor is FORWARD of iptables, nor our own.
func TestDropping(t *testing.T) {
	planetest.OwnNetns(t)
	for _, x := range []droppingCase{
		{"nothing", "", nil},
		{"accepting", "table inet a { chain f { type filter hook forward priority 0; policy accept; ct state invalid drop; }; }", nil},
		{"policy", "table inet a { chain f { type filter hook forward priority 0; policy drop; ct state established accept; }; }",
			[]string{"inet a: f"}},
		{"of one family", "table ip a { chain f { type filter hook forward priority 0; policy drop; }; }", []string{"ip a: f"}},
		{"last rule", `table inet a { chain f { type filter hook forward priority 0; iifname "lo" accept; counter log prefix "no: " reject with icmpx admin-prohibited; }; }`,
			[]string{"inet a: f"}},
		{"as firewalld", `table inet firewalld { chain z { }; chain filter_FORWARD { type filter hook forward priority 10; ct status dnat accept; jump z; reject with icmpx admin-prohibited; }; }`,
			[]string{"inet firewalld: filter_FORWARD"}},
		{"trusted by firewalld", `table inet firewalld { chain t { accept; }; chain z { iifname "ovn-k8s-mp0" goto t; }; chain filter_FORWARD { type filter hook forward priority 10; jump z; reject; }; }`, nil},
		{"accepts the device", `table inet a { chain f { type filter hook forward priority 0; policy drop; iifname { "eth1", "ovn-k8s-mp0" } accept; }; }`, nil},
		{"of input", "table inet a { chain f { type filter hook input priority 0; policy drop; }; }", nil},
		{"ours", "table inet egret { chain f { type filter hook forward priority 0; policy drop; }; }", nil},
		{"iptables", "table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop; }; }", nil},
		{"two", "table inet a { chain f { type filter hook forward priority 0; policy drop; }; }; table ip6 b { chain g { type filter hook forward priority 5; drop; }; }",
			[]string{"inet a: f", "ip6 b: g"}},
		{"of no family of the cluster, ip", "table ip6 a { chain f { type filter hook forward priority 0; policy drop; }; }", nil},
		{"last rule with a comment", `table inet a { chain f { type filter hook forward priority 0; counter drop comment "the rest"; }; }`,
			[]string{"inet a: f"}},
		{"last rule about some", `table inet a { chain f { type filter hook forward priority 0; ip daddr 192.0.2.1 drop comment "drop"; }; }`, nil},
	} {
		load(t, x.rules)
		have, err := Dropping(t.Context(), "ovn-k8s-mp0", x.families()...)
		if err != nil {
			t.Fatal(err)
		}
		if len(have) != len(x.named) {
			t.Errorf("%s: %q, want %d", x.what, have, len(x.named))
			continue
		}
		all := strings.Join(have, "\n")
		for _, n := range x.named {
			table, chain, _ := strings.Cut(n, ": ")
			if want := "chain " + chain + " of nftables table " + table + " drops"; !strings.Contains(all, want) {
				t.Errorf("%s: %q, want %q in it", x.what, have, want)
			}
		}
	}
}

type droppingCase struct {
	what, rules string   // what ends in ", ip" where the cluster has IPv4 alone
	named       []string // "family table chain" with a colon before the chain
}

func (c droppingCase) families() []string {
	if strings.HasSuffix(c.what, ", ip") {
		return []string{"ip"}
	}
	return []string{"ip", "ip6"}
}

// load puts these rules in the place of all there are.
func load(t *testing.T, rules string) {
	t.Helper()
	c := exec.Command("nft", "-f", "-")
	c.Stdin = strings.NewReader("flush ruleset\n" + rules)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, rules)
	}
}

// TestOutdated: what others take of FORWARD comes back with the next round after it is told of, and not before.
func TestOutdated(t *testing.T) {
	f := &Fake{}
	p, want := New(f), a
	grow := func() {
		if err := p.Grow(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	grow()
	f.Rules[false] = nil
	if grow(); len(f.Rules[false]) > 0 {
		t.Error("the chain was read though nobody told of a change")
	}
	p.Outdated()
	if grow(); len(f.Rules[false]) != 4 {
		t.Errorf("rules %q, want four", f.Rules[false])
	}
}
