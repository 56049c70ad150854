package node

import (
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plane/planetest"
)

// TestFirewallIsFollowed: a chain that drops what the host forwards is a problem as soon as others tell of a change,
// and none when it is gone; our rules of iptables are looked for each time.
func TestFirewallIsFollowed(t *testing.T) {
	planetest.OwnNetns(t)
	f := newFirewall(slog.New(slog.DiscardHandler))
	f.pause = 0
	others, looked := make(chan struct{}), make(chan struct{}, 9)
	wake := func() {}
	read := func() string { f.look(t.Context()); return strings.Join(f.problems(), "; ") }
	if have := read(); have != "" {
		t.Fatalf("without rules: %s", have)
	}
	nft := func(args string) {
		t.Helper()
		if out, err := exec.Command("nft", args).CombinedOutput(); err != nil {
			t.Fatalf("nft %s: %v: %s", args, err, out)
		}
	}
	nft("add table inet mine; add chain inet mine closed { type filter hook forward priority 0; policy drop; }")
	if have := read(); !strings.HasPrefix(have, "chain closed of nftables table inet mine drops") {
		t.Errorf("with a chain that drops: %q", have)
	}
	nft("add rule inet mine closed iifname ovn-k8s-mp0 accept")
	if have := read(); have != "" {
		t.Errorf("with a rule about the management port: %s", have)
	}
	go f.follow(t.Context(), others, func() { looked <- struct{}{} }, wake)
	for range 2 {
		others <- struct{}{}
		select {
		case <-looked:
		case <-time.After(time.Minute):
			t.Fatal("nobody looked for our rules of iptables")
		}
	}
}

// TestFirewallIsToldOf: the node's report names the chain.
func TestFirewallIsToldOf(t *testing.T) {
	a, _ := startLateAgent(t, &lateServer{version: 5})
	for _, drops := range [][]string{{"chain closed drops"}, nil} {
		a.firewall.mu.Lock()
		a.firewall.drops = drops
		a.firewall.mu.Unlock()
		told := strings.Contains(strings.Join(toldProblems(t, a), "; "), "chain closed drops")
		if told != (drops != nil) {
			t.Errorf("chains %q: told %t", drops, told)
		}
	}
}
