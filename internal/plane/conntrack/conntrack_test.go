package conntrack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

var _ Zones = (*ovs.DB)(nil)

var addr = netip.MustParseAddr

func TestParseEntry(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       Entry
		flush      string
	}{
		{"tcp with mark, labels and state",
			"tcp,orig=(src=10.0.0.1,dst=8.8.8.8,sport=1234,dport=80),reply=(src=8.8.8.8,dst=172.18.0.50,sport=80,dport=1234),zone=5,mark=7,labels=0x3,protoinfo=(state=SYN_SENT)",
			Entry{6, Tuple{Src: addr("10.0.0.1"), Dst: addr("8.8.8.8"), SrcPort: 1234, DstPort: 80},
				Tuple{Src: addr("8.8.8.8"), Dst: addr("172.18.0.50"), SrcPort: 80, DstPort: 1234}, 5, 0, Tuple{}},
			"ct_nw_src=10.0.0.1,ct_nw_dst=8.8.8.8,ct_nw_proto=6,ct_tp_src=1234,ct_tp_dst=80"},
		{"verbose: id before zone, several states",
			"tcp,orig=(src=10.0.0.1,dst=8.8.8.8,sport=1,dport=2),reply=(src=8.8.8.8,dst=10.0.0.1,sport=2,dport=1),id=9,zone=6,status=0,protoinfo=(state_orig=SYN_SENT,state_reply=CLOSED,flags_orig=0)\n",
			Entry{6, Tuple{Src: addr("10.0.0.1"), Dst: addr("8.8.8.8"), SrcPort: 1, DstPort: 2},
				Tuple{Src: addr("8.8.8.8"), Dst: addr("10.0.0.1"), SrcPort: 2, DstPort: 1}, 6, 0, Tuple{}},
			"ct_nw_src=10.0.0.1,ct_nw_dst=8.8.8.8,ct_nw_proto=6,ct_tp_src=1,ct_tp_dst=2"},
		{"icmp",
			"icmp,orig=(src=10.0.0.1,dst=8.8.8.8,id=3,type=8,code=0),reply=(src=8.8.8.8,dst=172.18.0.50,id=3,type=0,code=0),zone=5",
			Entry{1, Tuple{Src: addr("10.0.0.1"), Dst: addr("8.8.8.8"), ICMPID: 3, ICMPType: 8},
				Tuple{Src: addr("8.8.8.8"), Dst: addr("172.18.0.50"), ICMPID: 3}, 5, 0, Tuple{}},
			"ct_nw_src=10.0.0.1,ct_nw_dst=8.8.8.8,ct_nw_proto=1,icmp_type=8,icmp_code=0,icmp_id=3"},
		{"udp over IPv6",
			"udp,orig=(src=fd00::1,dst=2001:db8::1,sport=5,dport=6),reply=(src=2001:db8::1,dst=fd00::50,sport=6,dport=5),zone=5",
			Entry{17, Tuple{Src: addr("fd00::1"), Dst: addr("2001:db8::1"), SrcPort: 5, DstPort: 6},
				Tuple{Src: addr("2001:db8::1"), Dst: addr("fd00::50"), SrcPort: 6, DstPort: 5}, 5, 0, Tuple{}},
			"ct_ipv6_src=fd00::1,ct_ipv6_dst=2001:db8::1,ct_nw_proto=17,ct_tp_src=5,ct_tp_dst=6"},
		{"icmpv6",
			"icmpv6,orig=(src=fd00::1,dst=2001:db8::1,id=0,type=128,code=0),reply=(src=2001:db8::1,dst=fd00::50,id=0,type=129,code=0),zone=5",
			Entry{58, Tuple{Src: addr("fd00::1"), Dst: addr("2001:db8::1"), ICMPType: 128},
				Tuple{Src: addr("2001:db8::1"), Dst: addr("fd00::50"), ICMPType: 129}, 5, 0, Tuple{}},
			"ct_ipv6_src=fd00::1,ct_ipv6_dst=2001:db8::1,ct_nw_proto=58,icmp_type=128,icmp_code=0,icmp_id=0"},
		{"unnamed protocol, zone 0 is not printed",
			"47,orig=(src=10.0.0.1,dst=8.8.8.8,sport=0,dport=0),reply=(src=8.8.8.8,dst=10.0.0.1,sport=0,dport=0),mark=1",
			Entry{47, Tuple{Src: addr("10.0.0.1"), Dst: addr("8.8.8.8")}, Tuple{Src: addr("8.8.8.8"),
				Dst: addr("10.0.0.1")}, 0, 0, Tuple{}},
			"ct_nw_src=10.0.0.1,ct_nw_dst=8.8.8.8,ct_nw_proto=47"},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, err := parseEntry(c.line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, have, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("entry (-want +have)\n%s", diff)
			}
			if got := have.flushTuple(); got != c.flush {
				t.Errorf("flush tuple\n%s\nwant\n%s", got, c.flush)
			}
		})
	}
}

func TestParseGarbage(t *testing.T) {
	for _, line := range []string{"", "bogus", "tcp", "tcp,orig=(src=x,dst=8.8.8.8)",
		"tcp,orig=(src=1.2.3.4,dst=8.8.8.8,sport=70000)", "nope,orig=(src=1.2.3.4,dst=8.8.8.8)"} {
		if e, err := parseEntry(line); err == nil {
			t.Errorf("%q was read as %+v", line, e)
		}
	}
}

// conn is a UDP connection in zone 5.
func conn(src, dst, seen string) Entry {
	return Entry{17, Tuple{Src: addr(src), Dst: addr(dst), SrcPort: 1234, DstPort: 53},
		Tuple{Src: addr(dst), Dst: addr(seen), SrcPort: 53, DstPort: 1234}, 5, 0, Tuple{}}
}

func own() map[string]Own {
	return map[string]Own{"GR_n1": {
		Addrs: []netip.Addr{addr("172.18.0.2"), addr("100.64.0.2"), addr("fc00::2")},
		Pods:  []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:10:244::/48")}}}
}

func sources(kv ...string) *plan.State {
	s := plan.New()
	for i := 0; i < len(kv); i += 2 {
		s.Sources.Put(planetest.Owner("eip"),
			plan.Source{Router: "GR_n1", Pod: addr(kv[i])}, plan.SourcesTo{{To: plan.Everywhere, IP: addr(kv[i+1])}})
	}
	s.SourceExempt.Put(planetest.Owner("zone"), addr("172.18.0.3"), plan.None{})
	return s
}

func newPlane(f *Fake) *Plane {
	return New(context.Background(), f, f, own, slog.New(slog.DiscardHandler))
}

func seen(f *Fake) string {
	var out []string
	for _, e := range f.Entries() {
		out = append(out, fmt.Sprintf("%s>%s as %s", e.Orig.Src, e.Orig.Dst, e.Source()))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func TestStale(t *testing.T) {
	want := sources("10.244.1.5", "172.18.0.50", "fd00:10:244::5", "fc00::50")
	want.Sources.Put(planetest.Owner("eip"), plan.Source{Router: "GR_n1", Pod: addr("10.244.1.7")}, plan.SourcesTo{
		{To: "nine", IP: addr("172.18.0.52")}, {To: "eight", IP: addr("172.18.0.53")},
		{To: "none", IP: addr("172.18.0.54")},
	})
	for name, network := range map[string]string{"nine": "9.9.9.0/24", "eight": "9.9.8.0/24"} {
		want.Destinations.Put(planetest.Owner("eip"), name, destinations.Of(netip.MustParsePrefix(network)))
	}
	p := policy{"GR_n1", want, rest{own()["GR_n1"], exemptAddresses(want)}, otherZones{}, false}
	for _, c := range []struct {
		why   string
		e     Entry
		stale bool
	}{
		{"right egress IP", conn("10.244.1.5", "8.8.8.8", "172.18.0.50"), false},
		{"former egress IP", conn("10.244.1.5", "8.8.8.8", "172.18.0.51"), true},
		{"node IP from before it was selected", conn("10.244.1.5", "8.8.8.8", "172.18.0.2"), true},
		{"node IP to a node", conn("10.244.1.5", "172.18.0.3", "172.18.0.2"), false},
		{"egress IP to a node", conn("10.244.1.5", "172.18.0.3", "172.18.0.50"), true},
		{"not translated", conn("10.244.1.5", "8.8.8.8", "10.244.1.5"), false},
		{"pod without egress IP, node IP", conn("10.244.1.6", "8.8.8.8", "172.18.0.2"), false},
		{"pod without egress IP, join IP of a hairpin", conn("10.244.1.6", "8.8.8.8", "100.64.0.2"), false},
		{"pod that lost its egress IP", conn("10.244.1.6", "8.8.8.8", "172.18.0.50"), true},
		{"client from outside", conn("172.18.0.100", "10.244.1.5", "100.64.9.9"), false},
		{"IPv6 right", conn("fd00:10:244::5", "2001:db8::1", "fc00::50"), false},
		{"IPv6 node IP", conn("fd00:10:244::5", "2001:db8::1", "fc00::2"), true},
		{"egress IP of these destinations", conn("10.244.1.7", "9.9.9.9", "172.18.0.52"), false},
		{"egress IP of other destinations", conn("10.244.1.7", "9.9.9.9", "172.18.0.53"), true},
		{"node IP to destinations with an egress IP", conn("10.244.1.7", "9.9.8.8", "172.18.0.2"), true},
		{"node IP to other destinations", conn("10.244.1.7", "8.8.8.8", "172.18.0.2"), false},
		{"egress IP to other destinations", conn("10.244.1.7", "8.8.8.8", "172.18.0.52"), true},
	} {
		if got := p.isStale(c.e); got != c.stale {
			t.Errorf("%s: stale is %v", c.why, got)
		}
	}
}

func TestOnlyWrongOnesEndAndOnlyOnChange(t *testing.T) {
	f := NewFake(map[string]int{"GR_n1_snat": 5}, conn("10.244.1.5", "8.8.8.8", "172.18.0.50"), conn("10.244.1.6",
		"8.8.8.8", "172.18.0.51"))
	other := conn("10.244.1.6", "8.8.8.8", "172.18.0.51")
	other.Zone = 6
	f.Add(other)
	p := newPlane(f)
	want := sources("10.244.1.5", "172.18.0.50", "10.244.1.6", "172.18.0.50")
	shrink(t, p, want)
	if got := seen(f); got != "10.244.1.5>8.8.8.8 as 172.18.0.50\n10.244.1.6>8.8.8.8 as 172.18.0.51" {
		t.Fatalf("left are\n%s", got)
	}
	n := f.Dumps()
	shrink(t, p, want)
	if f.Dumps() != n {
		t.Error("looked again without a change")
	}
	shrink(t, p, sources("10.244.1.6", "172.18.0.50"))
	if got := seen(f); got != "10.244.1.6>8.8.8.8 as 172.18.0.51" {
		t.Fatalf("a pod that lost its egress IP keeps its connection:\n%s", got)
	}
}

// silentSwitch does not say what it tracks.
type silentSwitch struct{ *Fake }

func (silentSwitch) Dump(context.Context, int, ...Entry) ([]Entry, error) {
	return nil, errors.New("no answer")
}

// TestEarly: connections end when the early plane is grown. What keeps it from that is said by the other one, which
// does the rest.
func TestEarly(t *testing.T) {
	f := NewFake(map[string]int{"GR_n1_snat": 5}, conn("10.244.1.5", "8.8.8.8", "172.18.0.2"))
	p, want := newPlane(f), sources("10.244.1.5", "172.18.0.50")
	p.target = silentSwitch{f}
	if err := p.Early().Grow(t.Context(), want); err != nil {
		t.Errorf("others have to wait: %v", err)
	}
	if err := p.Shrink(t.Context(), want); err == nil {
		t.Error("nobody is told that connections could not be ended")
	}
	p.target = f
	if err := p.Early().Grow(t.Context(), want); err != nil || seen(f) != "" {
		t.Errorf("grown: %v, left are %q", err, seen(f))
	}
	f.Add(conn("10.244.1.6", "8.8.8.8", "172.18.0.2"))
	shrink(t, p, sources("10.244.1.6", "172.18.0.50"))
	if seen(f) != "" {
		t.Errorf("shrunk, left are %q", seen(f))
	}
}

func TestRouterWithoutZoneIsLookedAtLater(t *testing.T) {
	f := NewFake(map[string]int{}, conn("10.244.1.5", "8.8.8.8", "172.18.0.2"))
	p := newPlane(f)
	want := sources("10.244.1.5", "172.18.0.50")
	shrink(t, p, want)
	f.Zones["GR_n1_snat"] = 5
	shrink(t, p, want)
	if got := seen(f); got != "" {
		t.Fatalf("left are\n%s", got)
	}
}

// TestElsewhere: a connection ends in all zones that it passes. With one of the egress IP that is left to this node's
// pods nothing happens.
func TestElsewhere(t *testing.T) {
	f := NewFake(map[string]int{"GR_n1_snat": 5, "GR_n1_dnat": 6})
	for _, ports := range []uint16{1234, 1235} {
		e := conn("10.244.1.5", "8.8.8.8", "172.18.0.50")
		if ports == 1235 {
			e = conn("10.244.1.6", "8.8.8.8", "172.18.0.50")
		}
		e.Orig.SrcPort, e.Reply.DstPort = ports, ports+1000 // translated, too
		f.Add(e)
		inside, outside := e, e
		inside.Zone, inside.Reply.Dst, inside.Reply.DstPort = 6, e.Orig.Src, e.Orig.SrcPort
		outside.Zone, outside.Orig.Src, outside.Orig.SrcPort = plan.ZoneGateway, e.Reply.Dst, e.Reply.DstPort
		f.Add(inside)
		f.Add(outside)
	}
	shrink(t, newPlane(f), sources("10.244.1.6", "172.18.0.50"))
	var left []string
	for _, e := range f.Entries() {
		left = append(left, fmt.Sprintf("%d: %s:%d", e.Zone, e.Orig.Src, e.Orig.SrcPort))
	}
	if have, want := strings.Join(left, " "),
		"5: 10.244.1.6:1235 6: 10.244.1.6:1235 64000: 172.18.0.50:2235"; have != want {
		t.Errorf("left are %s\nwant %s", have, want)
	}
}

func shrink(t *testing.T, p *Plane, s *plan.State) {
	t.Helper()
	if err := p.Shrink(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// TestRealSwitch makes connections with real translations and lets the plane end the wrong ones.
func TestRealSwitch(t *testing.T) {
	s := ovstest.Start(t, ovstest.Dummy)
	s.Vsctl("add-br", "br0", "--", "set", "bridge", "br0", "fail_mode=secure", "--", "add-port", "br0", "p1", "--",
		"set", "interface", "p1", "ofport_request=1", "--", "add-port", "br0", "p2")
	for _, f := range []string{
		"ip,in_port=1,nw_src=10.244.1.5,actions=ct(commit,zone=6),ct(commit,zone=5,nat(src=172.18.0.50),table=1)",
		"ip,in_port=1,nw_src=10.244.1.6,actions=ct(commit,zone=6),ct(commit,zone=5,nat(src=172.18.0.51),table=1)",
		"ipv6,in_port=1,actions=ct(commit,zone=6),ct(commit,zone=5,nat(src=fc00::2),table=1)",
		"table=1,ip,actions=ct(commit,zone=64000),2",
		"table=1,ipv6,actions=ct(commit,zone=64000),2",
	} {
		s.Ofctl("add-flow", s.Mgmt("br0"), f)
	}
	eth := "in_port(1),eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a),"
	for _, src := range []string{"10.244.1.5", "10.244.1.6"} {
		ip := eth + "eth_type(0x0800),ipv4(src=" + src + ",dst=8.8.8.8,proto=%d,tos=0,ttl=64,frag=no),"
		s.Appctl("netdev-dummy/receive", "p1", fmt.Sprintf(ip, 6)+"tcp(src=1234,dst=80),tcp_flags(syn)")
		s.Appctl("netdev-dummy/receive", "p1", fmt.Sprintf(ip, 17)+"udp(src=1234,dst=53)")
		s.Appctl("netdev-dummy/receive", "p1", fmt.Sprintf(ip, 1)+"icmp(type=8,code=0)")
	}
	ip6 := eth + "eth_type(0x86dd),ipv6(src=fd00:10:244::5,dst=2001:db8::1,label=0,proto=%d,tclass=0,hlimit=64,frag=no),"
	s.Appctl("netdev-dummy/receive", "p1", fmt.Sprintf(ip6, 17)+"udp(src=5,dst=6)")
	s.Appctl("netdev-dummy/receive", "p1", fmt.Sprintf(ip6, 58)+"icmpv6(type=128,code=0)")

	target := Switch{s.RunDir}
	count := func(zone, want int, source string) (all []Entry) {
		all, err := target.Dump(t.Context(), zone)
		if err != nil || len(all) != want {
			t.Fatalf("%d connections in zone %d, %v; want %d", len(all), zone, err, want)
		}
		for _, e := range all {
			if source != "" && e.Orig.Src != addr(source) {
				t.Errorf("left in zone %d: %+v", zone, e)
			}
		}
		return all
	}
	before := count(5, 8, "")
	count(6, 8, "")
	count(plan.ZoneGateway, 8, "")
	zones := NewFake(map[string]int{"GR_n1_snat": 5, "GR_n1_dnat": 6})
	p := New(t.Context(), target, zones, own, slog.New(slog.DiscardHandler))
	shrink(t, p, sources("10.244.1.5", "172.18.0.50", "10.244.1.6", "172.18.0.50", "fd00:10:244::5", "fc00::50"))
	count(5, 3, "10.244.1.5")
	count(6, 3, "10.244.1.5")
	count(plan.ZoneGateway, 3, "172.18.0.50")
	if err := target.Flush(t.Context(), before[0]); err != nil {
		t.Errorf("flush twice: %v", err)
	}
	for _, e := range before {
		if err := target.Flush(t.Context(), e); err != nil {
			t.Errorf("flush of a connection that is gone: %v", err)
		}
	}
}

// TestSourceReplaced is the agent's way: one state for its life, in which an owner's rows are replaced.
func TestSourceReplaced(t *testing.T) {
	f := NewFake(map[string]int{"GR_n1_snat": 5}, conn("10.244.1.5", "8.8.8.8", "172.18.0.50"))
	p := newPlane(f)
	rows := func(ip string, to ...netip.Prefix) *plan.Rows {
		r := &plan.Rows{}
		t := plan.SourceTo{To: plan.Everywhere, IP: addr(ip)}
		if len(to) > 0 {
			t.To = "some"
			plan.Add(&r.Destinations, t.To, destinations.Of(to...))
		}
		r.AddSource(plan.Source{Router: "GR_n1", Pod: addr("10.244.1.5")}, t)
		return r
	}
	narrow, other := netip.MustParsePrefix("8.8.8.0/24"), netip.MustParsePrefix("9.9.9.0/24")
	s, last := plan.New(), &plan.Rows{}
	becomes := func(now *plan.Rows) {
		s.Replace(planetest.Owner("eip"), last, now)
		last = now
		shrink(t, p, s)
	}
	becomes(rows("172.18.0.50", narrow, other))
	f.Add(conn("10.244.1.5", "9.9.9.9", "172.18.0.50"))
	becomes(rows("172.18.0.50", narrow))
	if got := seen(f); got != "10.244.1.5>8.8.8.8 as 172.18.0.50" {
		t.Fatalf("after the destinations changed: %s", got)
	}
	becomes(rows("172.18.0.50"))
	if got := seen(f); got != "10.244.1.5>8.8.8.8 as 172.18.0.50" {
		t.Fatalf("after the first round: %s", got)
	}
	becomes(rows("172.18.0.51"))
	if got := seen(f); got != "" {
		t.Fatalf("after the source changed: %s", got)
	}
}

// TestOthersDestinations: who has no pod with a source to the destinations that change has nothing to look at.
func TestOthersDestinations(t *testing.T) {
	f := NewFake(map[string]int{"GR_n1_snat": 5})
	p, s := newPlane(f), sources("10.244.1.5", "172.18.0.50")
	shrink(t, p, s)
	f.Add(conn("10.244.1.5", "8.8.8.8", "172.18.0.51")) // nobody looks
	s.Replace(planetest.Owner("eip"), &plan.Rows{}, &plan.Rows{Destinations: map[string]destinations.Set{
		"some": destinations.Everything()}})
	shrink(t, p, s)
	if got := seen(f); got == "" {
		t.Error("connections were looked at")
	}
}

// many are connections of one pod that were translated to 172.18.0.50.
func many(n int) []Entry {
	var out []Entry
	for i := range n {
		e := conn("10.244.1.5", "8.8.8.8", "172.18.0.50")
		e.Orig.SrcPort, e.Reply.DstPort = uint16(1000+i), uint16(1000+i)
		out = append(out, e)
	}
	return out
}

// Thousands of connections are ended by portions, and others have their turn after each; a look at all of them is not
// repeated for that.
func TestPortions(t *testing.T) { synctest.Test(t, endsByPortions) }

func endsByPortions(t *testing.T) {
	f := NewFake(map[string]int{"GR_n1_snat": 5}, many(5*portion)...)
	p, want := newPlane(f), sources()
	p.turn = 0
	for i := range 4 {
		if err := p.Shrink(t.Context(), want); err != plane.ErrUnfinished {
			t.Fatalf("turn %d: %v", i, err)
		}
		if left := len(f.Entries()); left != (4-i)*portion {
			t.Fatalf("turn %d leaves %d connections", i, left)
		}
	}
	if f.Dumps() != 1 {
		t.Errorf("%d looks at all connections, want 1", f.Dumps())
	}
	if err := p.Shrink(t.Context(), want); err != nil || len(f.Entries()) > 0 {
		t.Errorf("%v, and %d connections are left", err, len(f.Entries()))
	}
}

// TestEndingGoesOnThroughChanges: a change does not throw away what was found, whoever is concerned, and what became
// wrong by it is found in the end.
func TestEndingGoesOnThroughChanges(t *testing.T) { synctest.Test(t, endingGoesOn) }

func endingGoesOn(t *testing.T) {
	f := NewFake(map[string]int{"GR_n1_snat": 5}, many(4*portion)...)
	p := newPlane(f)
	p.turn = 0
	if err := p.Shrink(t.Context(), sources("10.244.1.6", "172.18.0.60")); err != plane.ErrUnfinished {
		t.Fatal(err)
	}
	f.Add(conn("10.244.1.6", "8.8.8.8", "172.18.0.60"))
	for i := range 2 {
		want := sources("10.244.1.6", fmt.Sprint("172.18.0.", 61+i))
		if err := p.Shrink(t.Context(), want); err != plane.ErrUnfinished {
			t.Fatal(err)
		}
		if left := len(f.Entries()); left != (2-i)*portion+1 || f.Dumps() != 1 {
			t.Fatalf("change %d leaves %d connections, after %d looks at all", i, left, f.Dumps())
		}
	}
	shrink(t, p, sources("10.244.1.6", "172.18.0.62"))
	if got := seen(f); got != "" {
		t.Errorf("left are\n%s", got)
	}
}

// What was to be ended stays if it is right by the time that its turn comes.
func TestPortionsAreForgotten(t *testing.T) {
	f := NewFake(map[string]int{"GR_n1_snat": 5}, many(3*portion)...)
	p := newPlane(f)
	p.turn = 0
	if err := p.Shrink(t.Context(), sources()); err != plane.ErrUnfinished {
		t.Fatal(err)
	}
	if err := p.Shrink(t.Context(), sources("10.244.1.5", "172.18.0.50")); err != nil || len(f.Entries()) != 2*portion {
		t.Errorf("%v, and %d connections are left, want %d", err, len(f.Entries()), 2*portion)
	}
}
