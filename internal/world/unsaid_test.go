package world_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// history is what becomes of one address, which EgressService a/x has or has not, at times that nobody else sees.
type history struct {
	*world.World
	now time.Time
	ip  netip.Addr
}

func newHistory() *history {
	h := &history{world.New("", &world.Config{}), time.Unix(1000, 0), netip.MustParseAddr("172.18.0.100")}
	h.boots("a")
	h.Pass(h.now)
	return h
}

func (h *history) boots(id string) {
	h.SetNode(&world.Node{Name: "n1", UID: "n1", BootID: id, Ready: true})
}

// names has the status name n1, as given at a time, or with 0 nobody.
func (h *history) names(given ref.Since) {
	s := &world.EgressService{Namespace: "a", Name: "x", UID: "u"}
	if given != 0 {
		i := world.Assignment{Node: "n1", IP: h.ip}
		s.Host, s.Items, s.Given = "n1", []world.Assignment{i}, []world.Given{{Assignment: i, Since: given}}
	}
	h.SetEgressService(s)
	h.Pass(h.now)
}

// says has n1 report that it holds the address as it was given at a time, or with 0 that it does not hold it.
func (h *history) says(boot string, given ref.Since) {
	r := &world.Holding{Node: "n1", BootID: boot, Holds: map[string][]netip.Addr{}}
	if given != 0 {
		r.Holds["a/x"] = []netip.Addr{h.ip}
		r.SayHeld("a/x", h.ip, given)
	}
	h.SetHolding(r)
}

// TestUnsaid: a node is waited for until it has said that it let go of what it was given last, in this boot, or 10 s
// after it was named no more.
func TestUnsaid(t *testing.T) {
	for name, x := range map[string]struct {
		happens func(*history)
		says    bool // that it holds nothing frees it: it had said that it holds it
	}{
		"named": {func(h *history) { h.names(1) }, false},
		"named and held": {func(h *history) {
			h.names(1)
			h.says("a", 1)
		}, true},
		"said to hold it, and named then": {func(h *history) {
			h.says("a", 1)
			h.names(1)
		}, true},
		"named again, and what it says is of the former time": {func(h *history) {
			h.names(1)
			h.says("a", 1)
			h.names(0)
			h.names(2)
		}, false},
		"named again, and held again": {func(h *history) {
			h.names(1)
			h.says("a", 1)
			h.names(0)
			h.names(2)
			h.says("a", 2)
		}, true},
		"booted anew": {func(h *history) {
			h.names(1)
			h.says("a", 1)
			h.boots("b")
		}, false},
		"named after it booted anew": {func(h *history) {
			h.names(1)
			h.says("a", 1)
			h.names(0)
			h.boots("b")
			h.names(2)
		}, false},
		"its report is deleted": {func(h *history) {
			h.names(1)
			h.says("a", 1)
			h.DelHolding("n1")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			x.happens(h)
			h.names(0)
			h.waited(t, true, "named a moment ago")
			h.says(h.Node("n1").BootID, 0)
			h.waited(t, !x.says, "when it says that it holds nothing")
			if again := h.Pass(h.now); !x.says && again != h.now.Add(10*time.Second) {
				t.Errorf("time is to pass at %v", again)
			}
			h.Pass(h.now.Add(10*time.Second - 1))
			h.waited(t, !x.says, "after almost 10 s")
			h.Pass(h.now.Add(10 * time.Second))
			h.waited(t, false, "after 10 s")
		})
	}
}

// TestUnsaidStands: what a node holds and is not named for stands though its report is deleted, for 10 s.
func TestUnsaidStands(t *testing.T) {
	h := newHistory()
	h.names(1)
	h.says("a", 1)
	h.names(0)
	h.DelHolding("n1")
	h.Pass(h.now)
	h.waited(t, true, "when its report is gone")
	h.Pass(h.now.Add(10 * time.Second))
	h.waited(t, false, "after 10 s")
}

func (h *history) waited(t *testing.T, want bool, when string) {
	t.Helper()
	if have := h.HeldAt(h.ip); want != (len(have) > 0) {
		t.Errorf("%s: the world knows of %v who may hold it", when, have)
	}
}
