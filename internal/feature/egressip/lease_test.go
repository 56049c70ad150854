package egressip_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/flow"
	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
	"github.com/egret-net/egret/internal/world"
)

// bridge is a real switch with the flows of a node that holds an address, in which the time goes on when it is told
// to.
type bridge struct {
	t     *testing.T
	s     *ovstest.Switch
	plane *flow.Plane
	all   *plan.State
	ip    netip.Addr
	own   string
}

type portNumbers map[string]int

func (p portNumbers) OFPort(name string) (int, bool) { n, ok := p[name]; return n, ok }

func (p portNumbers) PatchInterface(string, string) string { return "ovn" }

func newBridge(t *testing.T, f world.Family) *bridge {
	b := bridgeWithoutLease(t, f)
	b.grow(b.all)
	return b
}

func bridgeWithoutLease(t *testing.T, f world.Family) *bridge {
	s := ovstest.Start(t, ovstest.Dummy)
	s.Vsctl("add-br", "breth0", "--", "set", "bridge", "breth0", "fail_mode=secure", "--", "add-port", "breth0", "eth0",
		"--", "set", "interface", "eth0", "ofport_request=1",
		"--", "add-port", "breth0", "ovn", "--", "set", "interface", "ovn", "ofport_request=2")
	s.Appctl("time/stop")
	p := flow.New(t.Context(), s.CommandPath("ovs-ofctl"), s.RunDir, portNumbers{"eth0": 1, "ovn": 2},
		slog.New(slog.DiscardHandler))
	h := newHandover(t, "n1", "n1", "n1")
	b := &bridge{t: t, s: s, plane: p, ip: h.ip, own: h.Host().UplinkMAC}
	h.SetService(nodePortService())
	if f == world.V6 {
		b.ip = netip.MustParseAddr("fc00:f853:ccd:e793::77")
		e := compiletest.EgressIP(0, "", b.ip)
		e.Items = []world.Assignment{{Node: "n1", IP: b.ip}}
		h.SetEgressIP(e)
	}
	full := compile.Full(h.World, all.Features())
	b.all = onlyFlows(full, func(plan.Flow) bool { return true })
	b.grow(onlyFlows(full, func(f plan.Flow) bool { return !isLease(f) }))
	return b
}

func (b *bridge) grow(want *plan.State) {
	b.t.Helper()
	if err := b.plane.Grow(b.t.Context(), want); err != nil {
		b.t.Fatal(err)
	}
}

func onlyFlows(s *plan.State, which func(plan.Flow) bool) *plan.State {
	out := plan.New()
	for f, actions := range s.Flows.Rows() {
		if which(f) {
			out.Flows.Put(s.Flows.Owner(f), f, actions)
		}
	}
	return out
}

func isLease(f plan.Flow) bool {
	stage, is := plan.StageAt(f.Table, f.Priority)
	switch stage {
	case plan.LeaseGate, plan.AnswerLeased, plan.AnswerOpen, plan.ClaimOwn, plan.ClaimReceived:
		return is
	}
	return false
}

// claim is what a machine says about the address that it has, on a port.
func (b *bridge) claim(port, mac string) {
	frame := fmt.Sprintf("eth(src=%s,dst=ff:ff:ff:ff:ff:ff),eth_type(0x0806),arp(sip=%s,tip=%s,op=2,sha=%s,tha=00:00:00:00:00:00)", mac, b.ip, b.ip, mac)
	if b.ip.Is6() {
		frame = fmt.Sprintf("eth(src=%s,dst=33:33:00:00:00:01),eth_type(0x86dd),ipv6(src=%s,dst=ff02::1,label=0,proto=58,tclass=0,hlimit=255,frag=no),icmpv6(type=136,code=0),"+
			"nd(target=%s,sll=00:00:00:00:00:00,tll=%s)", mac, b.ip, b.ip, mac)
	}
	b.receive(port, "in_port(1),"+frame)
}

// receive gives the switch a frame, as its datapath's flows are written, or in hexadecimal.
func (b *bridge) receive(port, frame string) {
	before := b.count(port, "rx")
	b.s.Appctl("netdev-dummy/receive", port, frame)
	for end := time.Now().Add(5 * time.Second); b.count(port, "rx") == before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("the switch did not take in %s", frame)
		}
	}
	time.Sleep(20 * time.Millisecond) // what is sent is counted a moment later
}

var counters = regexp.MustCompile(`(rx|tx) pkts=(\d+)`)

func (b *bridge) count(port, way string) int {
	for _, m := range counters.FindAllStringSubmatch(b.s.Ofctl("dump-ports", b.s.Mgmt("breth0"), port), -1) {
		if n, err := strconv.Atoi(m[2]); m[1] == way && err == nil {
			return n
		}
	}
	b.t.Fatal("no counters of port " + port)
	return 0
}

// answers asserts whether what OVN says about the address goes out.
func (b *bridge) answers(when string, want bool) {
	b.t.Helper()
	before := b.count("eth0", "tx")
	b.claim("ovn", b.own)
	have := b.count("eth0", "tx") > before
	for end := time.Now().Add(5 * time.Second); want && !have && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		have = b.count("eth0", "tx") > before
	}
	if have != want {
		b.t.Errorf("%s: OVN's answer goes out: %v, want %v\n%s", when, have, want, b.s.Ofctl("dump-flows",
			b.s.Mgmt("breth0")))
	}
}

// pass lets time go by in the switch, which looks for flows that have ended once a second.
func (b *bridge) pass(seconds int) {
	b.t.Helper()
	for range seconds {
		b.s.Appctl("time/warp", "1000")
	}
}

// TestLease: while the agent renews its lease, OVN answers for what the node holds, whatever others say. Without it
// OVN answers until another machine claims the address, and for as long as it goes on claiming it, not.
func TestLease(t *testing.T) {
	for _, f := range []world.Family{world.V4, world.V6} {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			b, other := newBridge(t, f), "02:00:00:00:00:02"
			b.answers("nobody else claims it", true)
			b.claim("eth0", other)
			b.answers("the agent decides", true)
			for range 3 {
				b.pass(15)
				if err := b.plane.Renew(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.claim("eth0", other)
			b.answers("the agent has been there all the time", true)
			b.pass(75)
			b.answers("no agent, and nobody else claims it", true)
			b.claim("eth0", b.own)
			b.answers("a switch sent its own announcement back", true)
			b.claim("eth0", other)
			b.answers("no agent, and another machine claims it", false)
			b.pass(60)
			b.claim("eth0", other)
			b.pass(60)
			b.answers("that goes on", false)
			b.pass(20)
			b.answers("that has ended", true)
			b.claim("eth0", other)
			if err := b.plane.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.answers("the agent is back", true)
			b.pass(25)
			b.answers("no agent, and what was announced while it was there does not count", true)
		})
	}
}

// TestNoAnswerWithoutLease: OVN answers for an egress IP as soon as its rows are there, as after a restart of
// ovs-vswitchd. While the lease is not, nothing of that goes out; what OVN says about the node itself does.
func TestNoAnswerWithoutLease(t *testing.T) {
	for f, own := range [...][]string{{"172.18.0.2"}, {"fc00:f853:ccd:e793::2", "fe80::1"}} {
		t.Run(world.Family(f).String(), func(t *testing.T) {
			t.Parallel()
			b := bridgeWithoutLease(t, world.Family(f))
			b.answers("no lease yet", false)
			held := b.ip
			for _, ip := range own {
				b.ip = netip.MustParseAddr(ip)
				b.answers("of the node's own", true)
			}
			b.ip = held
			b.grow(b.all)
			b.answers("leased", true)
		})
	}
}

// TestClaimsReachAll: what another machine says about the address goes where it went.
func TestClaimsReachAll(t *testing.T) {
	b := newBridge(t, world.V4)
	host, ovn := b.count("LOCAL", "tx"), b.count("ovn", "tx")
	b.claim("eth0", "02:00:00:00:00:02")
	if b.count("LOCAL", "tx") == host || b.count("ovn", "tx") == ovn {
		t.Errorf("host and OVN did not both receive it:\n%s", strings.TrimSpace(b.s.Ofctl("dump-ports",
			b.s.Mgmt("breth0"))))
	}
}
