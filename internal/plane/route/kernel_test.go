package route

import (
	"context"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func apply(t *testing.T, p plane.Plane, s *plan.State) error {
	t.Helper()
	return plane.Apply(t.Context(), []plane.Plane{p}, s)
}

func wantIP(t *testing.T, args string, want ...string) {
	t.Helper()
	out := ip(t, args)
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("ip %s says\n%s\nwithout %q", args, out, w)
		}
	}
}

// What iproute2 says is what was asked for: the conformance suite reads with the plane's own eyes.
func TestKernelHoldsWhatWasAsked(t *testing.T) {
	newHost(t)
	fatal(t, apply(t, open(t), stateA()))
	wantIP(t, "-d addr show dev br0", "inet 192.0.2.77/32 metric 234881109 scope global deprecated",
		"inet6 fd00:77::7/128 metric 234881109 scope global nodad deprecated",
		"inet 10.1.0.1/24 brd 10.1.0.255 scope global", ",UP,")
	wantIP(t, "route show", "10.9.0.0/16 via 10.1.0.254 dev br0 proto 69", "mtu 1400",
		"198.51.100.0/24 dev br0 proto 69 scope link src 10.1.0.1")
	wantIP(t, "-6 route show table 1007", "default via fd00:1::fe dev br0 proto 69 metric 1024")
	wantIP(t, "-d rule show", "6000:\tfrom 10.244.0.0/16 fwmark 0xe000007 lookup 1007",
		"30:\tfrom all to 10.96.0.0/16 lookup 7", "proto 69")
	wantIP(t, "-6 -d rule show", "6000:\tfrom fd00:10:244::/48 fwmark 0xe000007 lookup 1007", "proto 69")
	if b, _ := os.ReadFile("/proc/sys/net/ipv4/conf/br0/rp_filter"); string(b) != "2\n" {
		t.Errorf("rp_filter is %q", b)
	}
}

// What is wanted and there already, made by somebody else, counts as held and outlives our wish.
func TestForeignRowsThatAreWantedAreLeftAlone(t *testing.T) {
	newHost(t)
	ip(t, "link set br0 up")
	ip(t, "addr add 10.1.0.1/24 dev br0")
	ip(t, "addr add 192.0.2.77/32 dev br0") // wanted deprecated
	ip(t, "route del local 192.0.2.77 dev br0 table local")
	ip(t, "addr add fd00:1::1/64 dev br0 nodad")
	ip(t, "route add 10.9.0.0/16 via 10.1.0.254 dev br0 mtu 1400 proto static")
	ip(t, "rule add pref 30 to 10.96.0.0/16 lookup 7")
	before := ip(t, "-br addr show dev br0") + ip(t, "route show proto static") + ip(t, "-d rule show to 10.96.0.0/16")
	p := open(t)
	fatal(t, apply(t, p, stateA()))
	fatal(t, apply(t, p, plan.New()))
	after := ip(t, "-br addr show dev br0") + ip(t, "route show proto static") + ip(t, "-d rule show to 10.96.0.0/16")
	if before != after {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestForeignRouteInTheWayIsARefusal(t *testing.T) {
	newHost(t)
	ip(t, "link set br0 up")
	ip(t, "route add 10.9.0.0/16 dev br0 proto static")
	ip(t, "-6 route add fd00:8::/64 dev br0 via fe80::1 proto static")
	p := open(t)
	r := plane.Refusals(apply(t, p, stateA()))
	if len(r) != 2 || r[0].Owner.Feature != "a" || !strings.HasPrefix(r[0].Row, "route table 254 fd00:8::/64") ||
		!strings.HasPrefix(r[1].Row, "route table 254 10.9.0.0/16") {
		t.Fatalf("refused %v", r)
	}
	if !strings.Contains(r[0].Error(), "somebody else") {
		t.Errorf("the refusal does not say why: %v", r[0])
	}
	wantIP(t, "route show", "10.9.0.0/16 dev br0 proto static scope link")
	ip(t, "route del 10.9.0.0/16")
	ip(t, "-6 route del fd00:8::/64")
	fatal(t, apply(t, p, stateA()))
	wantIP(t, "route show", "10.9.0.0/16 via 10.1.0.254 dev br0 proto 69")
}

func TestRowsWaitForTheirLink(t *testing.T) {
	newHost(t)
	late := &plan.Rows{
		Addrs: map[plan.Addr]plan.AddrSpec{{Dev: "late0", Prefix: netip.MustParsePrefix("10.5.0.1/24")}: {}},
		Routes: map[plan.RouteKey]plan.Route{routeKey(254, "10.6.0.0/16"): {Dev: "late0",
			Via: netip.MustParseAddr("10.5.0.9")}},
		Sysctls: map[plan.Sysctl]string{{Key: "net.ipv4.conf.late0.rp_filter"}: "2"},
	}
	s := state(map[string]*plan.Rows{"late": late, "other": rowsA()})
	p := open(t)
	for range 2 {
		r := plane.Refusals(apply(t, p, s))
		if len(r) != 3 || r[0].Owner.Feature != "late" || r[1].Owner.Feature != "late" || r[2].Owner.Feature != "late" {
			t.Fatalf("refused %v", r)
		}
		wantIP(t, "addr show dev br0", "10.1.0.1/24")
		ip(t, "link add late0 type bridge")
		fatal(t, apply(t, p, s))
		if have, want := dump(t, p.stack, true), text(s); have != want {
			t.Errorf("the kernel holds\n%s\nwant\n%s", have, want)
		}
		ip(t, "link del late0")
	}
}

// The kernel removes routes with a link that goes down, and with their source address.
func TestWhatTheKernelTakesAwayComesBack(t *testing.T) {
	newHost(t)
	p := open(t)
	fatal(t, apply(t, p, stateA()))
	ip(t, "link set br0 down")
	fatal(t, apply(t, p, stateA()))
	if have, want := dump(t, p.stack, true), text(stateA()); have != want {
		t.Errorf("the kernel holds\n%s\nwant\n%s", have, want)
	}
}

// TestFlushedRoutesComeBack deletes routes that the kernel made of our addresses, as network managers do, and expects
// them, and ours that need them, back with the next call.
func TestFlushedRoutesComeBack(t *testing.T) {
	newHost(t)
	p := open(t)
	fatal(t, apply(t, p, stateA()))
	kernels := func() string {
		return ip(t, "-4 route show table all dev br0") + ip(t, "-6 route show table main dev br0 to root fd00:1::/64")
	}
	before := kernels()
	for _, flush := range []string{"-4 route flush dev br0", "-4 route flush dev br0",
		"-6 route flush dev br0 to root fd00:1::/64", "-4 route flush table local dev br0", "-4 addr flush dev br0",
		"-6 addr flush dev br0 scope global", "-4 route flush table all dev br0"} {
		ip(t, flush)
		fatal(t, apply(t, p, stateA()))
		if have, want := dump(t, p.stack, true), text(stateA()); have != want {
			t.Errorf("after %s the kernel holds\n%s\nwant\n%s", flush, have, want)
		}
		if have := kernels(); sortedLines(have) != sortedLines(before) {
			t.Errorf("after %s the kernel has the routes\n%s\nbefore they were\n%s", flush, have, before)
		}
	}
}

func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// A kernel before 5.18 does not keep an address's protocol: of those with a subnet only what this process added is
// proven ours.
func TestKernelThatKeepsNoAddressProtocol(t *testing.T) {
	f := NewFake()
	f.Plane = newPlane(forgetful{fakeStack{f.FakeHost}})
	f.Addrs[addr("10.1.0.1/24")] = FakeAddr{}
	f.Addrs[addr("10.1.0.2/24")] = FakeAddr{}
	fatal(t, apply(t, f, stateA()))
	fatal(t, apply(t, f, plan.New()))
	if len(f.Addrs) != 2 {
		t.Errorf("left are %v, want the two that were there", f.Addrs)
	}
}

type forgetful struct{ fakeStack }

func (f forgetful) listAddrs() (map[plan.Addr]heldAddr, error) {
	have, err := f.fakeStack.listAddrs()
	for k, a := range have {
		have[k] = heldAddr{spec: a.spec}
	}
	return have, err
}

// What a kernel without IFA_PROTO shows is ours: it stays if it is wanted, and goes if it is not. What has neither mark
// stays, however much it looks like ours.
func TestOtherMarksOfOurs(t *testing.T) {
	newHost(t)
	ip(t, "link set br0 up")
	for _, marked := range []string{"192.0.2.77/32", "192.0.2.78/32", "fd00:77::8/128"} {
		ip(t, "addr add "+marked+" dev br0 metric 0x0e000055 preferred_lft 0")
	}
	ip(t, "addr add 192.0.2.80/32 dev br0 metric 85 preferred_lft 0")
	ip(t, "addr add fd00:77::9/128 dev br0 preferred_lft 0")
	h, err := ReadHost(t.Context())
	fatal(t, err)
	for _, a := range h.Addrs {
		foreign := slices.Contains([]string{"192.0.2.80/32", "fd00:77::9/128"}, a.Prefix.String())
		if a.Dev == "br0" && !a.Prefix.Addr().IsLinkLocalUnicast() && a.Ours == foreign {
			t.Errorf("%s: ours %v", a.Prefix, a.Ours)
		}
	}
	fatal(t, apply(t, open(t), stateA()))
	have, err := readAddrs()
	fatal(t, err)
	protocols := map[string]uint8{}
	for _, a := range have {
		if a.prefix.Addr().IsGlobalUnicast() {
			protocols[a.prefix.String()] = a.protocol
		}
	}
	want := map[string]uint8{"10.1.0.1/24": 0x55, "10.2.0.1/24": 0x55, "fd00:1::1/64": 0x55, "fd00:77::7/128": 0x55,
		"192.0.2.77/32": 0, "192.0.2.80/32": 0, "fd00:77::9/128": 0}
	if !maps.Equal(protocols, want) {
		t.Errorf("addresses and their protocols are %v, want %v", protocols, want)
	}
}

func TestRefusesWhatTheKernelDoesNotTake(t *testing.T) {
	newHost(t)
	p := open(t)
	for name, rows := range map[string]*plan.Rows{
		"unreachable gateway": {Routes: map[plan.RouteKey]plan.Route{routeKey(254, "10.6.0.0/16"): {Dev: "lo",
			Via: netip.MustParseAddr("203.0.113.1")}}},
		"no such setting": {Sysctls: map[plan.Sysctl]string{{Key: "net.ipv4.no_such_setting"}: "1"}},
		"bad value":       {Sysctls: map[plan.Sysctl]string{{Key: "net.ipv4.ip_forward"}: "perhaps"}},
		"outside":         {Sysctls: map[plan.Sysctl]string{{Key: "///////etc/hostname"}: "x"}},
		"no table":        {Rules: map[plan.Rule]plan.None{{Priority: 5}: {}}},
		"no destination":  {Routes: map[plan.RouteKey]plan.Route{{Table: 254}: {Dev: "lo"}}},
		"foreign source": {Routes: map[plan.RouteKey]plan.Route{routeKey(254, "10.6.0.0/16"): {Dev: "lo",
			Src: netip.MustParseAddr("203.0.113.1")}}},
	} {
		r := plane.Refusals(apply(t, p, state(map[string]*plan.Rows{name: rows})))
		if len(r) != 1 || r[0].Owner != planetest.Owner(name) {
			t.Errorf("%s: refused %v", name, r)
		}
	}
}

func TestWatchSignalsOnceForManyChanges(t *testing.T) {
	newHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	changed, err := Watch(ctx)
	fatal(t, err)
	for _, change := range []string{"link set br0 up", "addr add 10.1.0.1/24 dev br0",
		"route add 10.9.0.0/16 via 10.1.0.254", "rule add pref 7 lookup 7", "-6 rule add pref 7 lookup 7"} {
		ip(t, change)
		select {
		case <-changed:
		case <-time.After(2 * time.Second):
			t.Fatalf("no signal after ip %s", change)
		}
		settle(changed)
	}
	for range 5 {
		ip(t, "addr add 10.1.0.2/24 dev br0")
		ip(t, "addr del 10.1.0.2/24 dev br0")
	}
	if n := settle(changed); n >= 10 {
		t.Errorf("%d signals for ten changes that nobody waited for", n)
	}
	cancel()
	select {
	case _, open := <-changed:
		if open {
			_, open = <-changed
		}
		if open {
			t.Error("the channel is not closed")
		}
	case <-time.After(2 * time.Second):
		t.Error("the channel is not closed")
	}
}

// settle takes signals until none comes for a while.
// What we add ourselves is not told; what is taken of it is, by whomever, also where more comes after it.
func TestWatchTellsWhatOthersDo(t *testing.T) {
	p, want, _ := openListed(t)
	changed, err := Watch(t.Context())
	fatal(t, err)
	former := &plan.Rows{}
	rule := plan.Rule{Priority: 6001, Table: 1008, Src: netip.MustParsePrefix("10.7.0.0/16")}
	for _, via := range []string{"10.1.0.254", "10.1.0.253"} {
		now := oneRoute("172.18.0.50/32", via)
		now.Rules = map[plan.Rule]plan.None{rule: {}}
		want.Replace(planetest.Owner("one"), former, now)
		fatal(t, apply(t, p, want))
		former = now
	}
	if n := settle(changed); n > 0 {
		t.Errorf("%d signals for what we added ourselves", n)
	}
	for _, c := range []struct {
		meddle []string
		taken  bool
	}{
		{[]string{"route add 10.66.0.0/16 dev br0"}, false},
		{[]string{"route del 172.18.0.50/32", "route add 10.67.0.0/16 dev br0"}, true},
		{[]string{"rule del pref 6001", "route add 10.68.0.0/16 dev br0"}, true},
		{[]string{"route del 10.1.0.0/24 dev br0"}, true}, // the kernel's, of an address
	} {
		for _, m := range c.meddle {
			ip(t, m)
		}
		time.Sleep(100 * time.Millisecond)
		if told := <-changed; told.Taken != c.taken {
			t.Errorf("after %q: %+v", c.meddle, told)
		}
	}
	fatal(t, apply(t, p, state(nil)))
	if told := <-changed; !told.Taken {
		t.Error("what we deleted ourselves is not told as taken")
	}
}

func settle(changed <-chan Change) (n int) {
	for {
		select {
		case <-changed:
			n++
		case <-time.After(100 * time.Millisecond):
			return n
		}
	}
}

func TestReadHost(t *testing.T) {
	newHost(t)
	ip(t, "link add v0 mtu 1400 type veth peer name v1")
	ip(t, "link set v0 master br0 up")
	ip(t, "link set v1 address 0a:58:0a:f4:00:01")
	fatal(t, apply(t, open(t), stateA()))
	ip(t, "route add default via 10.1.0.254 metric 100 proto dhcp")
	ip(t, "route add default via 10.1.0.253 metric 50 proto dhcp")
	ip(t, "addr add 10.3.0.1/24 dev br0")
	ip(t, "addr add 10.4.0.1/24 dev br0 scope link")
	fatal(t, os.WriteFile("/proc/sys/net/ipv4/conf/br0/forwarding", []byte("1"), 0o644))
	h, err := ReadHost(t.Context())
	fatal(t, err)
	br, _ := h.Link("br0")
	v0, _ := h.Link("v0")
	v1, _ := h.Link("v1")
	for i, want := range []Link{
		{Name: "br0", MTU: 1400, Up: true, Kind: "bridge", Table: 254, Forwards: true},
		{Name: "v0", MTU: 1400, Up: true, Kind: "veth", Master: "br0", Table: 254},
		{Name: "v1", MTU: 1500, Kind: "veth", MAC: "0a:58:0a:f4:00:01", Table: 254},
	} {
		have := []Link{br, v0, v1}[i]
		if have.Index == 0 || have.MAC == "" {
			t.Errorf("link %+v has no index or MAC", have)
		}
		have.Index = 0
		if want.MAC == "" {
			have.MAC = ""
		}
		if have != want {
			t.Errorf("link is %+v, want %+v", have, want)
		}
	}
	any := func(string) bool { return true }
	if d := h.DefaultRoutes(false, any); len(d) != 1 || d[0].Via != netip.MustParseAddr("10.1.0.253") ||
		d[0].Dev != "br0" || d[0].Metric != 50 || d[0].Ours {
		t.Errorf("default is %+v", d)
	}
	if d := h.DefaultRoutes(true, any); len(d) > 0 {
		t.Errorf("IPv6 default is %+v, of another table", d)
	}
	wantAddr := []Address{
		{Dev: "br0", Prefix: netip.MustParsePrefix("10.1.0.1/24"), Ours: true},
		{Dev: "br0", Prefix: netip.MustParsePrefix("10.2.0.1/24"), Ours: true},
		{Dev: "br0", Prefix: netip.MustParsePrefix("10.3.0.1/24")},
		{Dev: "br0", Prefix: netip.MustParsePrefix("10.4.0.1/24"), Local: true},
		{Dev: "br0", Prefix: netip.MustParsePrefix("192.0.2.77/32"), Ours: true, Deprecated: true},
		{Dev: "br0", Prefix: netip.MustParsePrefix("fd00:1::1/64"), Ours: true},
		{Dev: "br0", Prefix: netip.MustParsePrefix("fd00:77::7/128"), Ours: true, Deprecated: true},
	}
	notGlobal := cmpopts.IgnoreSliceElements(func(a Address) bool {
		return a.Dev != "br0" || a.Prefix.Addr().IsLinkLocalUnicast()
	})
	if d := cmp.Diff(wantAddr, h.Addrs, notGlobal, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
		cmpopts.IgnoreFields(Address{}, "Rank")); d != "" {
		t.Errorf("addresses (-want +have):\n%s", d)
	}
}

// A route that is copied as it was read is the same: also one by a gateway that no route leads to, or that is of the
// other family. One into a tunnel of its own is none of ours.
func TestRoutesAreCopiedWhole(t *testing.T) {
	newHost(t)
	ip(t, "link set br0 up")
	ip(t, "addr add 10.1.0.1/24 dev br0")
	ip(t, "route add default via 203.0.113.1 dev br0 onlink")
	ip(t, "route add 10.8.0.0/16 via inet6 fe80::8 dev br0")
	ip(t, "route add 10.9.0.0/16 nexthop via 203.0.113.2 dev br0 onlink nexthop via inet6 fe80::9 dev br0")
	ip(t, "-6 route add 2001:db8:1::/48 via 2001:db8::1 dev br0 onlink")
	// not on every kernel
	_ = exec.Command("ip", strings.Fields("-6 route add 2001:db8:2::/48 encap seg6 mode encap segs 2001:db8::2 dev br0")...).Run()
	h, err := ReadHost(t.Context())
	fatal(t, err)
	routes := map[plan.RouteKey]plan.Route{}
	for _, r := range h.Routes {
		if k := (plan.RouteKey{Table: 1003, Dst: r.Dst}); r.Dst.Addr().IsGlobalUnicast() || r.Dst.Bits() == 0 {
			routes[k] = plan.Route{Dev: r.Dev, Via: r.Via, MTU: r.MTU, OnLink: r.OnLink}
		}
	}
	fatal(t, apply(t, open(t), state(map[string]*plan.Rows{"copy": {Routes: routes}})))
	wantIP(t, "route show table 1003", "default via 203.0.113.1 dev br0 proto 69 onlink",
		"10.8.0.0/16 via inet6 fe80::8 dev br0 proto 69",
		"10.9.0.0/16 via inet6 fe80::9 dev br0 proto 69", "10.1.0.0/24 dev br0 proto 69 scope link")
	wantIP(t, "-6 route show table 1003", "2001:db8:1::/48 via 2001:db8::1 dev br0 proto 69 metric 1024 onlink")
	if out := ip(t, "-6 route show table 1003"); strings.Contains(out, "2001:db8:2::/48") {
		t.Errorf("a route into a tunnel is copied:\n%s", out)
	}
}

// TestDefaultOfSeveralNextHops: each that is by the device, of the least metric; one that is dead only where all are.
func TestDefaultOfSeveralNextHops(t *testing.T) {
	newHost(t)
	ip(t, "link add eth0 type veth peer name far0")
	for _, dev := range []string{"br0", "eth0", "far0"} {
		ip(t, "link set "+dev+" up")
	}
	ip(t, "addr add 10.1.0.2/24 dev br0")
	ip(t, "addr add 10.2.0.2/24 dev eth0")
	ip(t, "-6 addr add fd01::2/64 dev br0 nodad")
	ip(t, "route add default metric 50 nexthop via 10.1.0.253 dev br0 nexthop via 10.1.0.254 dev br0 nexthop via "+
		"10.2.0.254 dev eth0")
	ip(t, "route add default metric 60 via 10.1.0.1 dev br0")
	ip(t, "-6 route add default nexthop via fd01::fd dev br0 nexthop via fd01::fe dev br0")
	vias := func(v6 bool, devs ...string) string {
		t.Helper()
		h, err := ReadHost(t.Context())
		fatal(t, err)
		var out []string
		for _, r := range h.DefaultRoutes(v6, func(dev string) bool { return slices.Contains(devs, dev) }) {
			out = append(out, r.Via.String())
		}
		return strings.Join(out, " ")
	}
	want := func(what, have, want string) {
		t.Helper()
		if have != want {
			t.Errorf("%s: next hops %q, want %q", what, have, want)
		}
	}
	want("by br0", vias(false, "br0"), "10.1.0.253 10.1.0.254")
	want("by br0, IPv6", vias(true, "br0"), "fd01::fd fd01::fe")
	want("by both", vias(false, "br0", "eth0"), "10.1.0.253 10.1.0.254 10.2.0.254")
	ip(t, "link set far0 down")
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(ip(t, "route show default"), "linkdown"); {
		if time.Sleep(5 * time.Millisecond); time.Now().After(deadline) { // the kernel looks at carriers once a second
			t.Fatal("eth0 has a carrier still")
		}
	}
	want("by both, eth0 without carrier", vias(false, "br0", "eth0"), "10.1.0.253 10.1.0.254")
	want("by eth0 without carrier", vias(false, "eth0"), "10.2.0.254")
	want("by a device without one", vias(false, "lo"), "")
}

// Rules are read in the kernel's order, ours among them, with what they ask for.
func TestReadHostRules(t *testing.T) {
	newHost(t)
	ip(t, "rule add pref 6000 from 10.0.0.0/8 iif br0 lookup 77")
	ip(t, "rule add pref 300 not from 10.1.0.0/16 to 10.2.0.0/16 fwmark 5/7 oif br0 lookup main suppress_prefixlength 0")
	ip(t, "rule add pref 400 goto 7000")
	ip(t, "rule add pref 500 blackhole from 10.3.0.0/16")
	ip(t, "rule add pref 600 uidrange 1000-1000 lookup 78")
	fatal(t, apply(t, open(t), state(map[string]*plan.Rows{"o": {Rules: map[plan.Rule]plan.None{{Priority: 6000,
		Table: 1007, Mark: 7, Mask: 0xff}: {}}}})))
	ip(t, "rule add pref 6000 lookup 79")
	ip(t, "-6 rule add pref 700 from fd00::/8 lookup 80")
	h, err := ReadHost(t.Context())
	fatal(t, err)
	p := netip.MustParsePrefix
	want := []Rule{
		{Table: 255},
		{Priority: 300, Not: true, Src: p("10.1.0.0/16"), Dst: p("10.2.0.0/16"), Mark: 5, Mask: 7, Oif: "br0",
			Table: 254, Shortest: 1},
		{Priority: 400, Goto: 7000},
		{Priority: 500, Src: p("10.3.0.0/16")},
		{Priority: 6000, Src: p("10.0.0.0/8"), Iif: "br0", Table: 77}, {Priority: 6000, Mark: 7, Mask: 0xff,
			Table: 1007, Ours: true}, {Priority: 6000, Table: 79},
		{Priority: 32766, Table: 254}, {Priority: 32767, Table: 253},
		{V6: true, Table: 255}, {V6: true, Priority: 700, Src: p("fd00::/8"), Table: 80}, {V6: true, Priority: 32766,
			Table: 254},
	}
	if d := cmp.Diff(want, h.Rules, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Errorf("rules (-want +have):\n%s", d)
	}
}

// A user's link that is down stays down: its addresses of ours are for others to use.
func TestDeprecatedAddressesRaiseNoLink(t *testing.T) {
	newHost(t)
	deprecated := map[plan.Addr]plan.AddrSpec{addr("192.0.2.77/32"): {Deprecated: true}}
	fatal(t, apply(t, open(t), state(map[string]*plan.Rows{"o": {Addrs: deprecated}})))
	wantIP(t, "addr show dev br0", "192.0.2.77/32", "state DOWN")
}

// Before the cluster is known, released addresses of a former process go, and no other row does.
func TestReleasedAddressesGoEarly(t *testing.T) {
	newHost(t)
	fatal(t, apply(t, open(t), stateA()))
	ip(t, "addr add 192.0.2.78/32 dev br0")
	released := map[netip.Addr]plan.None{}
	for _, text := range []string{"192.0.2.77", "192.0.2.78", "10.1.0.1", "fd00:77::7"} {
		released[netip.MustParseAddr(text)] = plan.None{}
	}
	before := dump(t, open(t).stack, true)
	fatal(t, open(t).EarlyPlane().Grow(t.Context(), state(map[string]*plan.Rows{"o": {ReleasedAddrs: released}})))
	wantIP(t, "addr show dev br0", "192.0.2.78/32", "10.1.0.1/24")
	for _, text := range []string{"192.0.2.77/32", "fd00:77::7/128"} {
		if !strings.Contains(before, text) || strings.Contains(dump(t, open(t).stack, true), text) {
			t.Errorf("%s is still there, or was never:\n%s", text, before)
		}
	}
	wantIP(t, "route show", "10.9.0.0/16 via 10.1.0.254 dev br0 proto 69")
}

// What is ours and is taken away by hand shows in Ours, and Watch tells of it and of links' settings.
func TestHostTellsOfWhatIsOurs(t *testing.T) {
	newHost(t)
	fatal(t, apply(t, open(t), stateA()))
	before, err := ReadHost(t.Context())
	fatal(t, err)
	changed, err := Watch(t.Context())
	fatal(t, err)
	for _, meddle := range []string{"addr del 192.0.2.77/32 dev br0", "route del 198.51.100.0/24",
		"-6 rule del pref 6000"} {
		ip(t, meddle)
		<-changed
		after, err := ReadHost(t.Context())
		fatal(t, err)
		if slices.Equal(before.Ours, after.Ours) {
			t.Errorf("after %s it still says %q", meddle, after.Ours)
		}
		before = after
	}
	for _, setting := range []string{"ipv4/conf/br0", "ipv4/conf/all", "ipv6/conf/all"} {
		for len(changed) > 0 {
			<-changed
		}
		flip(t, "/proc/sys/net/"+setting+"/forwarding")
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Errorf("nothing is told of the forwarding of %s", setting)
		}
		after, err := ReadHost(t.Context())
		fatal(t, err)
		if strings.HasSuffix(setting, "all") && slices.Equal(before.Ours, after.Ours) {
			t.Errorf("after a change of %s it still says %q", setting, after.Ours)
		}
		before = after
	}
}

// flip writes 0 where there is 1, and 1 elsewhere.
func flip(t *testing.T, file string) {
	t.Helper()
	have, err := os.ReadFile(file)
	fatal(t, err)
	fatal(t, os.WriteFile(file, []byte(map[bool]string{true: "0", false: "1"}[strings.TrimSpace(string(have)) == "1"]),
		0o644))
}

func BenchmarkKernelApplyNothingNew(b *testing.B) {
	newHost(b)
	p := open(b)
	for b.Loop() {
		if err := plane.Apply(b.Context(), []plane.Plane{p}, stateA()); err != nil {
			b.Fatal(err)
		}
	}
}
