package nft

import (
	"os/exec"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
)

// TestChangesOfOthers: what another process does to our tables is told of at once and undone by the next round; what it
// does to its own, and what we do, leaves what we remember alone.
func TestChangesOfOthers(t *testing.T) {
	p := openPlane(t)
	told := p.Watch(t.Context())
	fatal(t, apply(t, p, stateA()))
	held := p.inet.held
	for _, c := range []struct {
		what    []string
		foreign bool
	}{
		{[]string{"add", "table", "inet", "other"}, false},
		{[]string{"add", "set", "inet", "other", "egret", "{ type ipv4_addr; }"}, false},
		{[]string{"add", "element", "inet", TableName, "pods", "{ 203.0.113.5 }"}, true},
		{[]string{"delete", "table", "netdev", TableName}, true},
		{[]string{"flush", "ruleset"}, true},
	} {
		if out, err := exec.Command("nft", c.what...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", c.what, err, out)
		}
		if have := toldSoon(told, c.foreign); have != c.foreign {
			t.Errorf("%v: told %v", c.what, have)
		}
		fatal(t, apply(t, p, stateA()))
		if have, want := dump(t, "inet", p.inet.nft)+dump(t, "netdev", p.netdev.nft), text(stateA()); have != want {
			t.Errorf("%v: the kernel holds\n%s\nwant\n%s", c.what, have, want)
		}
		if reread := p.inet.held != held; reread != c.foreign {
			t.Errorf("%v: read anew: %v", c.what, reread)
		}
		held = p.inet.held
	}
}

// TestChangesBeside: whoever changes tables of others is told of, and what we do to ours is not.
func TestChangesBeside(t *testing.T) {
	p := openPlane(t)
	p.Watch(t.Context())
	fatal(t, apply(t, p, stateA()))
	if toldSoon(p.ForeignChanges(), false) {
		t.Error("told of our own tables")
	}
	for _, what := range []string{"add table inet other", "add chain inet other f { type filter hook forward priority 0; policy drop; }",
		"flush ruleset"} {
		if out, err := exec.Command("nft", what).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", what, err, out)
		}
		if !toldSoon(p.ForeignChanges(), true) {
			t.Errorf("not told of: %s", what)
		}
	}
}

// toldSoon gives a signal that must come a second, and one that must not a moment.
func toldSoon(told <-chan struct{}, expected bool) bool {
	patience := 50 * time.Millisecond
	if expected {
		patience = time.Second
	}
	select {
	case <-told:
		return true
	case <-time.After(patience):
		return false
	}
}

// TestOwnTransactionsAreNoNews: whatever a transaction of ours does, it is not taken for another's; one of another that
// comes while we write is.
func TestOwnTransactionsAreNoNews(t *testing.T) {
	p := openPlane(t)
	for range 3 {
		fatal(t, apply(t, p, stateA()))
		fatal(t, apply(t, p, stateB()))
	}
	fatal(t, apply(t, p, state(map[string]*plan.Rows{"o": largeSet(20000)})))
	if p.changes.takeForeign() {
		t.Error("our own transactions count as another's")
	}
	fatal(t, p.changes.byUs(func() error {
		for _, set := range []string{"a", "b"} {
			if out, err := exec.Command("nft", "add", "set", "inet", TableName, set,
				"{ type ipv4_addr; }").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		return nil
	}))
	if !p.changes.takeForeign() {
		t.Error("two transactions count as one of ours")
	}
}
