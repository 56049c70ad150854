package route

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func TestFakeConforms(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		f := NewFake("gone0")
		r := rig(t, func() stack { return fakeStack{f.FakeHost} })
		r.PutForeign = func(*testing.T) {
			f.Addrs[addr("10.2.0.2/24")] = FakeAddr{}
			f.Routes[routeKey(1007, "10.11.0.0/16")] = FakeRoute{Route: plan.Route{Dev: "br0"}}
			f.Rules[plan.Rule{Priority: 6000, Table: 1007, Src: netip.MustParsePrefix("10.0.0.0/8")}] = false
		}
		r.DumpForeign = func(t *testing.T) string { return dump(t, fakeStack{f.FakeHost}, false) }
		r.DeleteOurs = func(*testing.T) { delete(f.Addrs, addr("10.1.0.1/24")) }
		return r
	})
}

func TestKernelConforms(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		newHost(t)
		r := rig(t, func() stack { return open(t).stack })
		r.PutForeign = func(t *testing.T) {
			ip(t, "link set br0 up")
			ip(t, "addr add 10.2.0.2/24 dev br0")
			ip(t, "addr add fd00:1::2/64 dev br0 nodad")
			ip(t, "route add 10.11.0.0/16 dev br0 table 1007 proto static")
			ip(t, "route add 10.9.0.0/16 dev br0 proto static metric 7")
			ip(t, "-6 route add fd00:9::/64 dev br0 proto static metric 7 table 1007")
			ip(t, "rule add pref 6000 from 10.0.0.0/8 lookup 1007")
			ip(t, "rule add pref 6000 from 10.244.0.0/16 iif br0 fwmark 0xe000007 lookup 1007")
		}
		r.DumpForeign = func(t *testing.T) string {
			return ip(t, "-br addr show dev br0 to 10.2.0.2/32") + ip(t, "-br addr show dev br0 to fd00:1::2/128") +
				ip(t, "route show table all proto static") + ip(t, "-6 route show table all proto static") + ip(t,
				"rule show from 10.0.0.0/8") +
				ip(t, "rule show iif br0")
		}
		r.DeleteOurs = func(t *testing.T) { ip(t, "addr del 10.1.0.1/24 dev br0") }
		return r
	})
}

// newHost moves the test into a network namespace of its own, with a bridge br0 that is down. Its thread dies with the
// test.
func newHost(t testing.TB) {
	t.Helper()
	planetest.OwnNetns(t)
	ip(t, "link set lo up")
	ip(t, "link add br0 type bridge")
	// As systems have it that do not set it: a primary address takes its subnet's others with it.
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/br0/promote_secondaries", []byte("0"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB) *Plane {
	t.Helper()
	p, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ip(t testing.TB, args string) string {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
	return string(out)
}

// meddled counts what is written, and refuses the second write from when fail is set.
type meddled struct {
	stack
	writes *int
	fail   *int
}

func (m meddled) write(err func() error) error {
	if *m.fail > 0 {
		if *m.fail--; *m.fail == 0 {
			return fmt.Errorf("meddling: %w", unix.ENOBUFS)
		}
	}
	*m.writes++
	return err()
}

func (m meddled) setUp(dev string) error { return m.write(func() error { return m.stack.setUp(dev) }) }

func (m meddled) putAddr(k plan.Addr, s plan.AddrSpec, there bool) error {
	return m.write(func() error { return m.stack.putAddr(k, s, there) })
}

func (m meddled) putRoute(k plan.RouteKey, r plan.Route, there bool) error {
	return m.write(func() error { return m.stack.putRoute(k, r, there) })
}

func (m meddled) addRule(r plan.Rule) error {
	return m.write(func() error { return m.stack.addRule(r) })
}

func (m meddled) delAddr(k plan.Addr) error {
	return m.write(func() error { return m.stack.delAddr(k) })
}

func (m meddled) delRoute(r heldRoute) error {
	return m.write(func() error { return m.stack.delRoute(r) })
}

func (m meddled) delRule(r plan.Rule) error {
	return m.write(func() error { return m.stack.delRule(r) })
}

func (m meddled) setSysctl(k, v string) error {
	return m.write(func() error { return m.stack.setSysctl(k, v) })
}

func rig(t *testing.T, target func() stack) *planetest.Rig {
	var writes, fail int
	bad := stateA()
	bad.Replace(planetest.Owner("bad"), &plan.Rows{}, &plan.Rows{Addrs: map[plan.Addr]plan.AddrSpec{{Dev: "gone0",
		Prefix: netip.MustParsePrefix("10.3.0.1/24")}: {}}})
	return &planetest.Rig{
		New: func(*testing.T) plane.Plane { return newPlane(meddled{target(), &writes, &fail}) },
		A:   stateA(), B: stateB(),
		Dump:     func(t *testing.T) string { return dump(t, target(), true) },
		Text:     text,
		Writes:   func() int { return writes },
		FailOnce: func(*testing.T) { fail = 2 },
		Bad:      bad, BadOwner: planetest.Owner("bad"), Hostile: hostile(),
		Monitored: true,
	}
}

// dump is what the target holds of ours, or of others, in the plan's own text.
func dump(t *testing.T, s stack, ours bool) string {
	t.Helper()
	rows := &plan.Rows{}
	addrs, err := s.listAddrs()
	fatal(t, err)
	for k, a := range addrs {
		if a.ours == ours {
			plan.Add(&rows.Addrs, k, a.spec)
		}
	}
	routes, err := s.listRoutes()
	fatal(t, err)
	for _, r := range slices.Concat(slices.Collect(maps.Values(routes))...) {
		if r.ours == ours {
			plan.Add(&rows.Routes, r.key, r.route)
		}
	}
	rules, err := s.listRules()
	fatal(t, err)
	for k, o := range rules {
		if o == ours {
			plan.Add(&rows.Rules, k, plan.None{})
		}
	}
	return state(map[string]*plan.Rows{"o": rows}).Text()
}

// text leaves out what is never undone.
func text(s *plan.State) string {
	return strings.Join(slices.DeleteFunc(strings.SplitAfter(s.Text(), "\n"),
		func(l string) bool { return strings.HasPrefix(l, "sysctl ") }), "")
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func addr(prefix string) plan.Addr {
	return plan.Addr{Dev: "br0", Prefix: netip.MustParsePrefix(prefix)}
}

func routeKey(table int, dst string) plan.RouteKey {
	return plan.RouteKey{Table: table, Dst: netip.MustParsePrefix(dst)}
}

func state(rows map[string]*plan.Rows) *plan.State {
	s := plan.New()
	for owner, r := range rows {
		s.Replace(planetest.Owner(owner), &plan.Rows{}, r)
	}
	return s
}

func rowsA() *plan.Rows {
	gw, gw6 := netip.MustParseAddr("10.1.0.254"), netip.MustParseAddr("fd00:1::fe")
	return &plan.Rows{
		Addrs: map[plan.Addr]plan.AddrSpec{
			addr("10.1.0.1/24"):    {},
			addr("10.2.0.1/24"):    {},
			addr("192.0.2.77/32"):  {Deprecated: true},
			addr("fd00:1::1/64"):   {NoDAD: true},
			addr("fd00:77::7/128"): {NoDAD: true, Deprecated: true},
		},
		Routes: map[plan.RouteKey]plan.Route{
			routeKey(254, "10.9.0.0/16"):     {Dev: "br0", Via: gw, MTU: 1400},
			routeKey(254, "198.51.100.0/24"): {Dev: "br0", Src: netip.MustParseAddr("10.1.0.1")},
			routeKey(1007, "0.0.0.0/0"):      {Dev: "br0", Via: gw},
			routeKey(1007, "::/0"):           {Dev: "br0", Via: gw6},
			routeKey(1007, "fd00:9::/64"):    {Dev: "br0", Via: gw6, MTU: 1400},
			routeKey(254, "fd00:8::/64"):     {Dev: "br0"},
			routeKey(1008, "10.7.0.0/16"):    {Dev: "br0", Via: netip.MustParseAddr("203.0.113.1"), OnLink: true},
			routeKey(1008, "10.8.0.0/16"):    {Dev: "br0", Via: netip.MustParseAddr("fe80::8")},
			routeKey(1008, "fd00:7::/64"):    {Dev: "br0", Via: netip.MustParseAddr("2001:db8::1"), OnLink: true},
		},
		Rules: map[plan.Rule]plan.None{
			{Priority: 31, Table: 7, Src: netip.MustParsePrefix("10.97.0.0/16")}: {},
			{Priority: 6000, Table: 1007, Mark: 0xe000007, Mask: 0xffffffff,
				Src: netip.MustParsePrefix("10.244.0.0/16")}: {},
			{V6: true, Priority: 6000, Table: 1007, Mark: 0xe000007, Mask: 0xffffffff,
				Src: netip.MustParsePrefix("fd00:10:244::/48")}: {},
			{Priority: 30, Table: 7, Dst: netip.MustParsePrefix("10.96.0.0/16")}: {},
		},
		Sysctls: map[plan.Sysctl]string{{Key: "net.ipv4.conf.br0.rp_filter"}: "2"},
	}
}

func stateA() *plan.State { return state(map[string]*plan.Rows{"a": rowsA()}) }

func stateB() *plan.State {
	r, gw := rowsA(), netip.MustParseAddr("10.1.0.254")
	delete(r.Addrs, addr("10.2.0.1/24"))
	delete(r.Addrs, addr("fd00:77::7/128"))
	r.Addrs[addr("192.0.2.77/32")] = plan.AddrSpec{}
	r.Addrs[addr("fd00:1::1/64")] = plan.AddrSpec{NoDAD: true, Deprecated: true}
	r.Addrs[addr("fd00:77::8/128")] = plan.AddrSpec{NoDAD: true, Deprecated: true}
	r.Routes[routeKey(254, "10.9.0.0/16")] = plan.Route{Dev: "br0", Via: netip.MustParseAddr("10.1.0.253"), MTU: 1300}
	r.Routes[routeKey(1007, "::/0")] = plan.Route{Dev: "br0", Via: netip.MustParseAddr("fd00:1::fd")}
	delete(r.Routes, routeKey(1007, "fd00:9::/64"))
	delete(r.Routes, routeKey(1007, "0.0.0.0/0"))
	r.Routes[routeKey(1008, "0.0.0.0/0")] = plan.Route{Dev: "br0"}
	r.Routes[routeKey(1008, "10.7.0.0/16")] = plan.Route{Dev: "br0", Via: netip.MustParseAddr("fe80::7"), OnLink: true}
	r.Routes[routeKey(1008, "10.8.0.0/16")] = plan.Route{Dev: "br0", Via: gw, OnLink: true}
	delete(r.Rules, plan.Rule{Priority: 30, Table: 7, Dst: netip.MustParsePrefix("10.96.0.0/16")})
	r.Rules[plan.Rule{Priority: 30, Table: 8, Dst: netip.MustParsePrefix("10.96.0.0/16")}] = plan.None{}
	r.Rules[plan.Rule{Priority: 31, Table: 8, In: "in0"}] = plan.None{}
	r.Rules[plan.Rule{V6: true, Priority: 31, Table: 8, In: "in0"}] = plan.None{}
	return state(map[string]*plan.Rows{"a": r})
}

// hostile are settings outside of their directory, and devices that are none.
func hostile() []plan.Rows {
	sysctl := func(key, value string) plan.Rows {
		return plan.Rows{Sysctls: map[plan.Sysctl]string{{Key: key}: value}}
	}
	return []plan.Rows{
		sysctl("net.ipv4.conf.//.//.kernel.core_pattern", "1"), sysctl(plan.LinkSetting("..", "forwarding"), "1"),
		sysctl("net.ipv4..forwarding", "1"),
		sysctl("net.ipv4.conf.a\nb.forwarding", "1"), sysctl("net.ipv4.ip_forward", "1\n0"),
		{Addrs: map[plan.Addr]plan.AddrSpec{{Dev: "lo\n", Prefix: netip.MustParsePrefix("10.3.0.1/24")}: {}}},
		{Routes: map[plan.RouteKey]plan.Route{{Table: 1009,
			Dst: netip.MustParsePrefix("10.3.0.0/24")}: {Dev: "../lo"}}},
	}
}
