package node

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/world"
)

// TestEars: down counts at once, and up after a down only when it has lasted; what was never up says nothing.
func TestEars(t *testing.T) {
	var said []string
	var timers []func()
	e := &ears{
		tell:  func(node string, s world.Tunnel) { said = append(said, fmt.Sprint(node, " ", s)) },
		alone: func(is bool) { said = append(said, map[bool]string{true: "alone", false: "not alone"}[is]) },
		after: func(_ time.Duration, f func()) func() bool {
			timers = append(timers, f)
			return func() bool { return true }
		},
		log: slog.New(slog.DiscardHandler), heard: map[string]*heard{},
	}
	up, down := ovs.Tunnel{Node: "n2", Up: true, WasUp: true}, ovs.Tunnel{Node: "n2", WasUp: true}
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"never up", func() { e.hear([]ovs.Tunnel{{Node: "n2"}}) }, nil},
		{"up", func() { e.hear([]ovs.Tunnel{up}) }, []string{"n2 up"}},
		{"down", func() { e.hear([]ovs.Tunnel{down}) }, []string{"n2 down", "alone"}},
		{"up again", func() { e.hear([]ovs.Tunnel{up}); e.hear([]ovs.Tunnel{up}) }, []string{"not alone"}},
		{"down before the time is over", func() { e.hear([]ovs.Tunnel{down}); timers[0]() }, []string{"alone"}},
		{"not the only one", func() { e.hear([]ovs.Tunnel{down, {Node: "n3", Up: true}}) }, []string{"n3 up", "not alone"}},
		{"up for long enough", func() { e.hear([]ovs.Tunnel{up}); timers[1]() }, []string{"n3 unknown", "n2 up"}},
		{"own ovs-vswitchd is new", func() { e.hear([]ovs.Tunnel{{Node: "n2"}}) }, []string{"n2 unknown"}},
		{"and hears it", func() { e.hear([]ovs.Tunnel{up}) }, []string{"n2 up"}},
		{"no session any more", func() { e.hear(nil) }, []string{"n2 unknown"}},
	} {
		said = nil
		if step.do(); !slices.Equal(said, step.want) {
			t.Errorf("%s: told %v, want %v", step.what, said, step.want)
		}
	}
	if len(timers) != 2 {
		t.Errorf("%d times waited, want 2", len(timers))
	}
}
