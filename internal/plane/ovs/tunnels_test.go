package ovs

import (
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plane"
)

// TestTunnels plays ovs-vswitchd: what it writes is told at once, and wakes nobody else.
func TestTunnels(t *testing.T) {
	s, d := start(t)
	must(t, plane.Apply(t.Context(), []plane.Plane{NewPlane(d)}, stateA()))
	must(t, d.AwaitSwitchd(t.Context()))
	s.KillVSwitchd()
	for _, x := range []struct {
		state, flaps string
		want         Tunnel
	}{
		{"down", "0", Tunnel{Node: "n2"}},
		{"up", "1", Tunnel{Node: "n2", Up: true, WasUp: true}},
		{"down", "2", Tunnel{Node: "n2", WasUp: true}},
		{"init", "2", Tunnel{Node: "n2", WasUp: true}},
		{"up", "3", Tunnel{Node: "n2", Up: true, WasUp: true}},
	} {
		drain(d)
		s.Vsctl("--no-wait", "set", "interface", "bfd-3", `bfd_status={state=`+x.state+`,flap_count="`+x.flaps+`"}`)
		select {
		case <-d.TunnelsChanged():
		case <-time.After(5 * time.Second):
			t.Fatalf("not told of %+v", x)
		}
		if have, err := d.Tunnels(t.Context()); err != nil || !slices.Equal(have, []Tunnel{x.want}) {
			t.Errorf("%s after %s flaps: tunnels %+v, %v; want %+v", x.state, x.flaps, have, err, x.want)
		}
		select {
		case <-d.Changed():
			t.Errorf("%s woke the planes", x.state)
		default:
		}
	}
}

// drain forgets what was signalled of earlier writes.
func drain(d *DB) {
	for range 2 {
		select {
		case <-d.Changed():
		case <-d.TunnelsChanged():
		case <-time.After(20 * time.Millisecond):
			return
		}
	}
}
