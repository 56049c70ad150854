package liveness_test

import (
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/liveness"
	"github.com/egret-net/egret/internal/world"
)

// TestNoProbesNoSessions: where people have switched probing off, nodes do not watch each other either.
func TestNoProbesNoSessions(t *testing.T) {
	for probed, want := range map[bool]int{true: 2, false: 0} {
		w := compiletest.Small("n1", world.SharedGateway)
		w.Config.ReachabilityTimeout = 0
		if probed {
			w.Config.ReachabilityTimeout = world.DefaultReachabilityTimeout
		}
		e := compiletest.EgressIP(0, "", compiletest.EgressAddr(0)...)
		for _, ip := range e.IPs {
			e.Items = append(e.Items, world.Assignment{Node: "n1", IP: ip})
		}
		w.SetEgressIP(e)
		have := 0
		for range compile.Full(w, []compile.Feature{liveness.Sessions{}}).Ports.Rows() {
			have++
		}
		if have != want {
			t.Errorf("nodes are probed: %v: %d sessions", probed, have)
		}
	}
}
