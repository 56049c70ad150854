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

// listener is ears that say what they tell, and whose times are over when the test says so.
type listener struct {
	*ears
	said   []string
	timers []func()
	clock  time.Time
}

func newListener() *listener {
	l := &listener{clock: time.Unix(100, 0)}
	l.ears = &ears{
		tell:  func(node string, s world.Tunnel) { l.said = append(l.said, fmt.Sprint(node, " ", s)) },
		alone: func(is bool) { l.said = append(l.said, map[bool]string{true: "alone", false: "not alone"}[is]) },
		after: func(_ time.Duration, f func()) func() bool {
			l.timers = append(l.timers, f)
			return func() bool { return true }
		},
		now: func() time.Time { return l.clock },
		log: slog.New(slog.DiscardHandler), heard: map[string]*heard{},
	}
	return l
}

// hears is told of the sessions that are up, by name; those of all others are down.
func (l *listener) hears(up ...string) []string {
	l.said = nil
	var all []ovs.Tunnel
	for _, n := range []string{"n2", "n3", "n4"} {
		all = append(all, ovs.Tunnel{Node: n, Up: slices.Contains(up, n), WasUp: true})
	}
	l.hear(all)
	return l.said
}

// TestDeafEars: a host that stood still hears nobody for a moment, and then one after the other. None of them is down, but who is not heard again in time.
func TestDeafEars(t *testing.T) {
	l := newListener()
	l.hears("n2", "n3", "n4")
	for _, step := range []struct {
		up   []string
		want string
	}{{nil, "[alone]"}, {[]string{"n3"}, "[not alone]"}, {nil, "[alone]"}, {[]string{"n3"}, "[not alone]"}, {[]string{"n2", "n3"}, "[]"}} {
		if have := fmt.Sprint(l.hears(step.up...)); have != step.want {
			t.Errorf("heard %v: told %s, want %s", step.up, have, step.want)
		}
	}
	l.said = nil
	if l.timers[0](); len(l.said) > 0 {
		t.Errorf("a time that was stopped: told %v", l.said)
	}
	if l.timers[1](); fmt.Sprint(l.said) != "[n4 down]" {
		t.Errorf("the time is over: told %v", l.said)
	}
	if have := fmt.Sprint(l.hears("n2")); have != "[n3 down]" {
		t.Errorf("hears again, and one is silent: told %s", have)
	}
}

// TestSilentOneAfterTheOther: who falls silent when others have been so for a while is down as they are.
func TestSilentOneAfterTheOther(t *testing.T) {
	l := newListener()
	l.hears("n2", "n3", "n4")
	if have := fmt.Sprint(l.hears("n2")); have != "[n3 down n4 down]" {
		t.Errorf("two are silent: told %s", have)
	}
	l.clock = l.clock.Add(atOnce)
	if have := fmt.Sprint(l.hears()); have != "[n2 down alone]" {
		t.Errorf("the third, later: told %s", have)
	}
}

// TestEars: down counts at once, and up after a down only when it has lasted; what was never up says nothing.
func TestEars(t *testing.T) {
	e := newListener()
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
		{"down before the time is over", func() { e.hear([]ovs.Tunnel{down}); e.timers[0]() }, []string{"alone"}},
		{"not the only one", func() { e.hear([]ovs.Tunnel{down, {Node: "n3", Up: true}}) }, []string{"n3 up", "not alone"}},
		{"up for long enough", func() { e.hear([]ovs.Tunnel{up}); e.timers[1]() }, []string{"n3 unknown", "n2 up"}},
		{"own ovs-vswitchd is new", func() { e.hear([]ovs.Tunnel{{Node: "n2"}}) }, []string{"n2 unknown"}},
		{"and hears it", func() { e.hear([]ovs.Tunnel{up}) }, []string{"n2 up"}},
		{"no session any more", func() { e.hear(nil) }, []string{"n2 unknown"}},
	} {
		e.said = nil
		if step.do(); !slices.Equal(e.said, step.want) {
			t.Errorf("%s: told %v, want %v", step.what, e.said, step.want)
		}
	}
	if len(e.timers) != 2 {
		t.Errorf("%d times waited, want 2", len(e.timers))
	}
}
