package node

import (
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/egret-net/egret/internal/plane/planetest"
	"github.com/egret-net/egret/internal/world"
)

// TestFirewallIsFollowed: a chain that drops what the host forwards is a problem as soon as others tell of a change,
// and none when it is gone; our rules of iptables are looked for each time. A look that failed is tried again, with
// nobody to tell of anything.
func TestFirewallIsFollowed(t *testing.T) {
	planetest.OwnNetns(t)
	f := newFirewall([]world.Family{world.V4}, slog.New(slog.DiscardHandler))
	f.pause = time.Millisecond
	others, looked := make(chan struct{}), make(chan struct{}, 9)
	go inThisNetns(t, func() { f.followChanges(t.Context(), others, func() { looked <- struct{}{} }, func() {}) })()
	tell := func() {
		t.Helper()
		others <- struct{}{}
		select {
		case <-looked:
		case <-time.After(time.Minute):
			t.Fatal("nobody looked for our rules of iptables")
		}
	}
	runNFT(t, "add table ip6 theirs; add chain ip6 theirs closed { type filter hook forward priority 0; policy drop; }")
	runNFT(t, "add table inet mine; add chain inet mine closed { type filter hook forward priority 0; policy drop; }")
	tell()
	f.soon(t, "chain closed of nftables table inet mine drops")
	runNFT(t, "add rule inet mine closed iifname ovn-k8s-mp0 accept")
	tell()
	f.soon(t, "")

	path := os.Getenv("PATH")
	broken := t.TempDir()
	if err := os.WriteFile(broken+"/nft", []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	runNFT(t, "flush chain inet mine closed")
	t.Setenv("PATH", broken+":"+path)
	tell()
	time.Sleep(20 * f.pause)
	t.Setenv("PATH", path)
	f.soon(t, "chain closed of nftables table inet mine drops")
}

// inThisNetns has a goroutine do so where this one is. Its thread ends with it.
func inThisNetns(t *testing.T, do func()) func() {
	t.Helper()
	here, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		defer here.Close()
		runtime.LockOSThread()
		if err := netns.Set(here); err != nil {
			t.Error(err)
			return
		}
		do()
	}
}

// soon waits for what is said to begin so, or for nothing to be said.
func (f *firewall) soon(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		have := strings.Join(f.problemTexts(), "; ")
		if strings.HasPrefix(have, want) && (have == "") == (want == "") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("have %q, want %q", have, want)
		}
	}
}

func runNFT(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("nft", args).CombinedOutput(); err != nil {
		t.Fatalf("nft %s: %v: %s", args, err, out)
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
