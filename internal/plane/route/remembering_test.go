package route

import (
	"net/netip"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// listed counts what is read.
type listed struct {
	stack
	n        int
	deleting func() // is called before a route is deleted
}

func (l *listed) delRoute(h heldRoute) error {
	if l.deleting != nil {
		l.deleting()
	}
	return l.stack.delRoute(h)
}

func (l *listed) listLinks() (links, error) { l.n++; return l.stack.listLinks() }

func (l *listed) listAddrs() (map[plan.Addr]heldAddr, error) { l.n++; return l.stack.listAddrs() }

func (l *listed) listRoutes() (map[plan.RouteKey][]heldRoute, error) {
	l.n++
	return l.stack.listRoutes()
}

func (l *listed) listRules() (map[plan.Rule]bool, error) { l.n++; return l.stack.listRules() }

// openListed is a plane that has stateA on a kernel.
func openListed(t *testing.T) (*Plane, *plan.State, *listed) {
	newHost(t)
	p, want := open(t), stateA()
	r := p.stack.(*remembering)
	l := &listed{stack: r.stack}
	r.stack = l
	for l.n = 1; l.n > 0; time.Sleep(100 * time.Millisecond) { // the kernel itself goes on with new addresses of IPv6
		l.n = 0
		fatal(t, apply(t, p, want))
	}
	return p, want, l
}

func oneRoute(dst, via string) *plan.Rows {
	return &plan.Rows{Routes: map[plan.RouteKey]plan.Route{routeKey(254, dst): {Dev: "br0",
		Via: netip.MustParseAddr(via), MTU: 1400}}}
}

// TestOneRouteNeedsNoListing: a route that comes, changes and goes is written, and nothing is read.
func TestOneRouteNeedsNoListing(t *testing.T) {
	for _, c := range []struct{ dst, via, other string }{
		{"172.18.0.50/32", "10.1.0.254", "10.1.0.253"}, {"fd00:50::7/128", "fd00:1::fe", "fd00:1::fd"},
	} {
		p, want, l := openListed(t)
		former := &plan.Rows{}
		steps := []*plan.Rows{oneRoute(c.dst, c.via), oneRoute(c.dst, c.other), {}, oneRoute(c.dst, c.via), {}}
		for i, now := range steps {
			want.Replace(planetest.Owner("one"), former, now)
			fatal(t, apply(t, p, want))
			if have, text := dump(t, open(t).stack, true), text(want); have != text {
				t.Errorf("%s, step %d: the kernel holds\n%s\nwant\n%s", c.dst, i, have, text)
			}
			former = now
		}
		if l.n > 0 {
			t.Errorf("%s: %d listings for a route that came and went", c.dst, l.n)
		}
	}
}

// TestWhatOthersChangeIsRead: what somebody else takes away or puts in its place, of ours, comes back, whatever it is,
// and also where it was changed between two writes of our own.
func TestWhatOthersChangeIsRead(t *testing.T) {
	for _, meddle := range [][]string{
		{"route del 10.9.0.0/16"},
		{"-6 route del fd00:8::/64"},
		{"route replace 10.9.0.0/16 via 10.1.0.253 dev br0", "route del 10.9.0.0/16 dev br0"},
		{"route del 10.7.0.0/16 table 1008", "route del 10.8.0.0/16 table 1008"},
		{"addr del 10.1.0.1/24 dev br0"},
		{"link set br0 down"}, // its routes go without a message of theirs
		{"rule del pref 6000"},
		{"-6 rule del pref 6000"},
	} {
		p, want, _ := openListed(t)
		for _, m := range meddle {
			ip(t, m)
		}
		more := oneRoute("172.18.0.50/32", "10.1.0.254")
		if meddle[0] == "addr del 10.1.0.1/24 dev br0" || meddle[0] == "link set br0 down" {
			more = &plan.Rows{}
		}
		want.Replace(planetest.Owner("one"), &plan.Rows{}, more)
		fatal(t, apply(t, p, want))
		fatal(t, apply(t, p, want))
		if have, text := dump(t, open(t).stack, true), text(want); have != text {
			t.Errorf("after %q the kernel holds\n%s\nwant\n%s", meddle, have, text)
		}
	}
}

// TestOwnDeletionHidesNoOthers: somebody takes away the very route that we are deleting, and one beside it; and the
// first once more, later.
func TestOwnDeletionHidesNoOthers(t *testing.T) {
	for _, meddle := range [][]string{
		{"route del 172.18.0.50/32"}, {"route del 10.9.0.0/16"}, {"route del 172.18.0.50/32", "route del 10.9.0.0/16"},
		{"route replace 172.18.0.50/32 via 10.1.0.253 dev br0 proto 69", "route del 172.18.0.50/32"},
	} {
		p, want, l := openListed(t)
		more := oneRoute("172.18.0.50/32", "10.1.0.254")
		want.Replace(planetest.Owner("one"), &plan.Rows{}, more)
		fatal(t, apply(t, p, want))
		l.deleting = func() {
			for _, m := range meddle {
				ip(t, m)
			}
		}
		want.Replace(planetest.Owner("one"), more, &plan.Rows{})
		fatal(t, apply(t, p, want))
		l.deleting = nil
		want.Replace(planetest.Owner("one"), &plan.Rows{}, more)
		fatal(t, apply(t, p, want))
		ip(t, "route del 172.18.0.50/32")
		fatal(t, apply(t, p, want))
		if have, text := dump(t, open(t).stack, true), text(want); have != text {
			t.Errorf("after %q the kernel holds\n%s\nwant\n%s", meddle, have, text)
		}
	}
}
