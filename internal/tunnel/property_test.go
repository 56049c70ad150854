package tunnel_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/tunnel"
	"github.com/egret-net/egret/internal/world"
)

// tick is what all times of a history are multiples of.
const tick = 100 * time.Millisecond

// oracle looks at every tick for how long each thing has been so. It plans nothing ahead, as the machine does.
type oracle struct {
	sessions  []tunnel.Session
	told      map[string]world.Tunnel // unless unknown
	up, down  map[string]int          // for how many ticks each node is so
	cutOff    bool
	answering int // for how many ticks any node answers, while this host is cut off; negative if none does
	alone     bool
}

// report takes in sessions.
func (o *oracle) report(sessions []tunnel.Session) {
	silent := slices.Collect(maps.Values(without(o.down, sessions)))
	up, down := map[string]int{}, map[string]int{}
	for _, s := range sessions {
		switch {
		case s.Up:
			up[s.Node] = o.up[s.Node]
		case s.WasUp:
			down[s.Node] = o.down[s.Node]
			silent = append(silent, down[s.Node])
		}
	}
	for node := range without(o.told, sessions) {
		delete(o.told, node)
	}
	o.sessions, o.up, o.down = sessions, up, down
	switch {
	case len(up) > 0:
		o.answering = max(o.answering, 0)
	case len(down) > 1:
		o.cutOff, o.answering = o.cutOff || slices.Max(silent)-slices.Min(silent) < 5, -1
	}
	o.alone = len(up) == 0 && (len(down) > 0 || o.alone)
}

// without are the entries of nodes that have no session.
func without[T any](all map[string]T, sessions []tunnel.Session) map[string]T {
	all = maps.Clone(all)
	for _, s := range sessions {
		delete(all, s.Node)
	}
	return all
}

// look draws the conclusions.
func (o *oracle) look() {
	o.cutOff = o.cutOff && o.answering < 12
	for _, s := range o.sessions {
		switch {
		case !s.Up && !s.WasUp:
			delete(o.told, s.Node)
		case !s.Up && !o.cutOff:
			o.told[s.Node] = world.TunnelDown
		case s.Up && (o.told[s.Node] != world.TunnelDown || o.up[s.Node] >= 10):
			o.told[s.Node] = world.TunnelUp
		}
	}
}

// pass is one tick.
func (o *oracle) pass() {
	for _, all := range []map[string]int{o.up, o.down} {
		for node := range all {
			all[node]++
		}
	}
	if o.cutOff && o.answering >= 0 {
		o.answering++
	}
}

// TestTellsAsOracle: after each tick of a random history the world was told what the oracle says, though the machine is
// asked only when there is a report, and when it wants to be.
func TestTellsAsOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m tunnel.Machine
		var r tunnel.Result
		o, told := &oracle{told: map[string]world.Tunnel{}, answering: -1}, map[string]world.Tunnel{}
		end := begin.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "ticks")) * tick)
		for now := begin; now.Before(end); now = now.Add(tick) {
			reported := rapid.IntRange(0, 2).Draw(t, "reported") == 0
			if reported {
				o.report(drawSessions(t, o.sessions))
			}
			o.look()
			if reported || !r.Wake.IsZero() && !now.Before(r.Wake) {
				r = m.Step(o.sessions, now)
				carryOut(t, told, r.Changes)
			}
			if !maps.Equal(told, o.told) || r.Alone != o.alone {
				t.Fatalf("after %v, %+v: have %v, alone %t; want %v, alone %t", now.Sub(begin), o.sessions, told,
					r.Alone, o.told, o.alone)
			}
			o.pass()
		}
	})
}

// carryOut brings changes, each of which must be one.
func carryOut(t *rapid.T, told map[string]world.Tunnel, changes []tunnel.Change) {
	for _, c := range changes {
		if c.Was != told[c.Node] || c.Is == c.Was {
			t.Fatalf("%+v, but it was %v", c, told[c.Node])
		}
		if told[c.Node] = c.Is; c.Is == world.TunnelUnknown {
			delete(told, c.Node)
		}
	}
}

// drawSessions changes one session, or all in one way.
func drawSessions(t *rapid.T, before []tunnel.Session) []tunnel.Session {
	kind := rapid.SampledFrom([]string{"up", "up", "down", "down", "down", "never up", "none"}).Draw(t, "kind")
	which := rapid.SampledFrom([]string{"n2", "n3", "n4", "n5", "all"}).Draw(t, "node")
	var out []tunnel.Session
	for _, node := range []string{"n2", "n3", "n4", "n5"} {
		i := slices.IndexFunc(before, func(s tunnel.Session) bool { return s.Node == node })
		switch {
		case which != node && which != "all" && i >= 0:
			out = append(out, before[i])
		case (which == node || which == "all") && kind != "none":
			up := kind == "up"
			out = append(out, tunnel.Session{Node: node, Up: up, WasUp: up || kind == "down"})
		}
	}
	return out
}
