package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/test/traffic"
)

// rereading is for how long after a route or an address of a host has changed its switch may drop what goes through a
// tunnel, in userspace (OVS 3.5): it forgets all routes before it reads them anew, and finds none for a tunnel's far
// end meanwhile. Flows that it has looked up just then stay so until it looks again. The kernel's datapath asks the
// kernel.
const rereading = 400 * time.Millisecond

// changes are the times at which routes of the main table, or addresses, of nodes changed.
type changes struct {
	mu sync.Mutex
	at []time.Time
}

// routeChanges watches all nodes until the test ends.
func (c *cluster) routeChanges(t *testing.T) *changes {
	t.Helper()
	seen, done := &changes{}, make(chan struct{})
	t.Cleanup(func() { close(done) })
	for _, n := range c.nodes {
		ns, err := netns.GetFromName(n.Name)
		must(t, err)
		defer ns.Close()
		routes, addresses := make(chan netlink.RouteUpdate, 64), make(chan netlink.AddrUpdate, 64)
		must(t, netlink.RouteSubscribeAt(ns, routes, done))
		must(t, netlink.AddrSubscribeAt(ns, addresses, done))
		go func() {
			for r := range routes {
				seen.note(r.Table == unix.RT_TABLE_MAIN || r.Table == unix.RT_TABLE_LOCAL)
			}
		}()
		go func() {
			for range addresses {
				seen.note(true)
			}
		}()
	}
	return seen
}

func (c *changes) note(counts bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if counts {
		c.at = append(c.at, time.Now())
	}
}

// during counts the datagrams that went missing just after a change. They were sent after the arrival that Missing has,
// which may be a little before the change.
func (c *changes) during(l traffic.Loss) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for _, m := range l.By {
		if slices.ContainsFunc(c.at, func(at time.Time) bool {
			after := m.After.Sub(at)
			return after > -rereading/4 && after < rereading
		}) {
			sum += m.Count
		}
	}
	return sum
}
