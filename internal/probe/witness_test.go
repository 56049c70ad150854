package probe_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/probe"
)

// TestHeard: an answer counts that came to this host's address on the nodes' network from another machine.
func TestHeard(t *testing.T) {
	own, other := netip.MustParseAddr("172.18.0.2"), netip.MustParseAddr("172.18.0.250")
	for _, c := range []struct {
		from, machine netip.Addr
		want          bool
	}{
		{own, other, true},
		{netip.AddrFrom16(own.As16()), other, true},
		{netip.MustParseAddr("192.168.7.2"), other, false}, // by a link of its own
		{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.1"), false},
		{own, own, false},
	} {
		p := probe.New(probe.Options{Total: time.Second})
		p.Follow(nil, probe.Witnesses{From: []netip.Addr{own}})
		if p.Heard(c.from, c.machine); p.Witnessed() != c.want {
			t.Errorf("%s answers %s: it counts is %t, want %t", c.machine, c.from, p.Witnessed(), c.want)
		}
	}
}

// TestWitnessesAreAsked: where there is one other node, or none of several answers.
func TestWitnessesAreAsked(t *testing.T) {
	for name, others := range map[string][]int{"two nodes": {95}, "three nodes": {96, 97}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			defer l.listen(9).Close()
			var targets []probe.Target
			for _, n := range others {
				defer l.mute(n)()
				targets = append(targets, probe.Target{Node: fmt.Sprint("n", n),
					Addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, byte(n)})}})
			}
			l.probe(probe.Options{Self: "self"})
			l.Follow(targets, probe.Witnesses{From: []netip.Addr{netip.MustParseAddr("127.0.0.1")},
				Hosts: []netip.Addr{netip.MustParseAddr("127.0.0.9")}})
			for end := time.Now().Add(20 * time.Second); !l.Witnessed(); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the witness has not answered")
				}
			}
		})
	}
}
