package e2e

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

const (
	// askEvery is how often a host outside asks who has an address.
	askEvery = 100 * time.Millisecond
	// quiet is how long one must have said nothing to count as one that answers no more.
	quiet = time.Second
	// overlap is how long two machines may both answer for one address while it moves: a former holder that Kubernetes
	// cannot reach waits 0.2 s for news and a second for the API server when it receives another one's claim. The
	// rest is for two busy cores.
	overlap = 2 * time.Second
)

// answers are those to a host's question who has an address, all the time.
type answers struct {
	t *testing.T
	*traffic.Asking
}

// asks has a host outside ask for addresses from now until the test ends.
func (c *cluster) asks(t *testing.T, host sandbox.Member, ips []netip.Addr) *answers {
	t.Helper()
	asking, err := traffic.Ask(host, ips, askEvery)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asking.Close)
	return &answers{t, asking}
}

// seen are the times of answers, by address and the hardware address that answered.
func (a *answers) seen() map[netip.Addr]map[string][]time.Time {
	out := map[netip.Addr]map[string][]time.Time{}
	for _, x := range a.Since(time.Time{}) {
		if out[x.IP] == nil {
			out[x.IP] = map[string][]time.Time{}
		}
		out[x.IP][x.MAC] = append(out[x.IP][x.MAC], x.At)
	}
	return out
}

// lately are who answered for an address in the last second.
func (a *answers) lately(ip netip.Addr) []string {
	var out []string
	for mac, at := range a.seen()[ip] {
		if len(at) > 0 && time.Since(at[len(at)-1]) < quiet {
			out = append(out, mac)
		}
	}
	slices.Sort(out)
	return out
}

// onlyHolders waits until of each address the node that the EgressIP's status names answers, and nobody else.
func (a *answers) onlyHolders(e egressIP) {
	a.t.Helper()
	within(a.t, notReadyTimeout, func() error {
		o, err := e.get()
		if err != nil {
			return err
		}
		for ip, node := range nodesOf(o) {
			want := kube.Node(e.c.node(a.t, node)).UplinkMAC.String()
			if have := a.lately(netip.MustParseAddr(ip)); !slices.Equal(have, []string{want}) {
				return fmt.Errorf("%v answer for %s, want %s of %s alone", have, ip, want, node)
			}
		}
		return nil
	})
}

// handedOver is for when the EgressIP is ready after a move: its check says that from now on nobody else has answered
// than the nodes that the status names now.
func (a *answers) handedOver(e egressIP) (check func()) {
	a.t.Helper()
	o, err := e.get()
	if err != nil {
		a.t.Fatal(err)
	}
	begin, holder := time.Now(), map[netip.Addr]string{}
	for ip, node := range nodesOf(o) {
		holder[netip.MustParseAddr(ip)] = kube.Node(e.c.node(a.t, node)).UplinkMAC.String()
	}
	return func() {
		a.t.Helper()
		for _, x := range a.Since(begin) {
			if x.MAC != holder[x.IP] {
				a.t.Errorf("%s answers for %s %s after the hand-over to %s", x.MAC, x.IP, x.At.Sub(begin), holder[x.IP])
			}
		}
	}
}

// neverTwo says that no two machines answered for an address at the same time for longer than overlap.
func (a *answers) neverTwo() {
	a.t.Helper()
	for ip, by := range a.seen() {
		macs := slices.Sorted(maps.Keys(by))
		for i, x := range macs {
			for _, y := range macs[i+1:] {
				both := together(spans(by[x]), spans(by[y]))
				a.t.Logf("%s: %s and %s both answered for %s", ip, x, y, both.Round(10*time.Millisecond))
				if both > overlap {
					a.t.Errorf("%s: %s and %s both answered for %s", ip, x, y, both)
				}
			}
		}
	}
}

// span is a time in which one answered without a pause.
type span struct{ first, last time.Time }

func spans(at []time.Time) []span {
	var out []span
	for _, t := range at {
		if n := len(out); n > 0 && t.Sub(out[n-1].last) < quiet {
			out[n-1].last = t
			continue
		}
		out = append(out, span{t, t})
	}
	return out
}

// together is the longest time that is in a span of each.
func together(a, b []span) time.Duration {
	var longest time.Duration
	for _, x := range a {
		for _, y := range b {
			from, to := x.first, x.last
			if y.first.After(from) {
				from = y.first
			}
			if y.last.Before(to) {
				to = y.last
			}
			longest = max(longest, to.Sub(from))
		}
	}
	return longest
}
