package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

type fixedPorts map[string]int

func (f fixedPorts) OFPort(name string) (int, bool) { n, ok := f[name]; return n, ok }

func (f fixedPorts) PatchInterface(bridge, network string) string {
	return "patch-" + bridge + "-" + network
}

var testPorts = fixedPorts{"eth0": 1, "patch-br0-default": 2}

// state claims flows of br0, given as "owner match actions", at priority 100 of table 0.
func state(flows ...string) *plan.State {
	s := plan.New()
	for _, f := range flows {
		w := strings.Fields(f)
		s.Flows.Put(planetest.Owner(w[0]), plan.Flow{Bridge: "br0", Priority: 100, Match: w[1]}, w[2])
	}
	return s
}

func stateA() *plan.State {
	return state("a ip,in_port={eth0} drop", "a ip,in_port={patch:default} output:{eth0}", "b arp NORMAL")
}

func stateB() *plan.State {
	return state("a ip,in_port={eth0} LOCAL", "b arp NORMAL", "c ip,in_port={LOCAL} output:{patch:default}")
}

func bad() *plan.State {
	s := stateA()
	s.Flows.Put(planetest.Owner("bad"),
		plan.Flow{Bridge: "br0", Priority: 100, Match: "tcp"}, "ct(commit,nat(src=fd00::1))")
	return s
}

// hostile are flows with what another machine said in the place of a hardware address or of a name.
func hostile() []plan.Rows {
	const second = "02:00:00:00:00:02\nadd cookie=0xbad,priority=65000 actions=drop"
	var out []plan.Rows
	for f, actions := range map[plan.Flow]string{
		{Bridge: "br0", Priority: 120, Match: "ip,dl_src=" + second}: "drop",
		{Bridge: "br0", Priority: 120, Match: "tcp,tp_dst=1"}: "mod_dl_dst:" + second +
			",in_port",
		{Bridge: "br0", Priority: 120, Match: "ip,cookie=0xbad"}:                            "drop",
		{Bridge: "br0", Priority: 120, Match: "ip,dl_src=02:00:00:00:00:02,priority=65000"}: "drop",
		{Bridge: "br0", Priority: 120, Match: "ip,actions=LOCAL"}:                           "drop",
		{Bridge: "br0", Priority: 120, Match: "ip,dl_src=02:00:00:00:00:02 actions=LOCAL#"}: "drop",
		{Bridge: "../../tmp/br0", Priority: 120, Match: "ip"}:                               "drop",
		{Bridge: "br0", Priority: 120, Match: "ip,in_port={eth0\n}"}:                        "drop",
		{Bridge: "br0", Priority: 120, Match: "arp,arp_op=2"}:                               "",
		{Bridge: "br0", Priority: 120, Match: "udp"}:                                        "output:1#",
	} {
		out = append(out, plan.Rows{Flows: map[plan.Flow]string{f: actions}})
	}
	return out
}

// dumped is what a dump says when the bridge holds s.
func dumped(s *plan.State) string {
	var out []string
	for f, actions := range s.Flows.Rows() {
		line, _ := resolveNow("br0", flowText(f, actions), testPorts)
		out = append(out, strings.TrimPrefix(line, "table=0,"))
	}
	return sorted(out)
}

func sorted(l []string) string { slices.Sort(l); return strings.Join(l, "\n") }

func start(t testing.TB) (*ovstest.Switch, *Plane) {
	s := ovstest.Start(t, ovstest.Dummy)
	s.Vsctl("add-br", "br0", "--", "set", "bridge", "br0", "fail_mode=secure", "--", "add-port", "br0", "eth0", "--",
		"set", "interface", "eth0", "ofport_request=1")
	return s, planeOn(t, s)
}

func planeOn(t testing.TB, s *ovstest.Switch) *Plane {
	return New(t.Context(), s.CommandPath("ovs-ofctl"), s.RunDir, testPorts, slog.New(slog.DiscardHandler))
}

// dump prints the flows of br0 that are ours, or that are not.
func dump(s *ovstest.Switch, ours bool) string {
	var out []string
	for l := range strings.Lines(s.Ofctl("--no-stats", "dump-flows", s.Mgmt("br0"))) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "cookie=0x") && strings.Contains(l, "deff105,") == ours {
			_, l, _ = strings.Cut(l, ", ")
			out = append(out, l)
		} else if !ours && strings.Contains(l, "actions=") && !strings.HasPrefix(l, "cookie=") {
			out = append(out, l)
		}
	}
	return sorted(out)
}

func TestConformance(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		s, _ := start(t)
		return &planetest.Rig{
			New: func(t *testing.T) plane.Plane { return planeOn(t, s) },
			A:   stateA(), B: stateB(), Bad: bad(), BadOwner: planetest.Owner("bad"), Hostile: hostile(),
			Dump: func(*testing.T) string { return normal(dump(s, true)) },
			Text: func(st *plan.State) string { return normal(dumped(st)) },
			PutForeign: func(*testing.T) {
				s.Ofctl("add-flow", s.Mgmt("br0"), "cookie=0x5,priority=100,ip,nw_src=10.0.0.1,actions=drop")
				s.Ofctl("add-flow", s.Mgmt("br0"), "table=3,priority=100,ip,actions=drop")
			},
			DumpForeign: func(*testing.T) string { return dump(s, false) },
			DeleteOurs:  func(*testing.T) { s.Ofctl("--strict", "del-flows", s.Mgmt("br0"), "priority=100,arp") },
			FailOnce:    func(t *testing.T) { failOnce(t, s) },
		}
	})
}

// failOnce has the switch hang up on the next connection.
func failOnce(t *testing.T, s *ovstest.Switch) {
	path := filepath.Join(s.RunDir, "br0.mgmt")
	if err := os.Rename(path, path+".good"); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
		l.Close() // which removes the socket
		os.Rename(path+".good", path)
	}()
}

// normal undoes the switch's own spelling of what the states above use.
func normal(text string) string {
	text = strings.NewReplacer("table=0, ", "", "in_port=br0", "in_port=LOCAL", "in_port=eth0", "in_port=1",
		"output:eth0", "output:1").Replace(text)
	var out []string
	for _, l := range strings.Split(text, "\n") {
		match, actions, _ := strings.Cut(l, " actions=")
		f := strings.Split(match, ",")
		slices.Sort(f)
		out = append(out, strings.Join(f, ",")+" actions="+actions)
	}
	return sorted(out)
}

func TestFakeConformance(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		f := NewFake(testPorts)
		f.Refuse = func(k plan.Flow, _ string) error {
			if k.Match == "tcp" {
				return errors.New("no")
			}
			return nil
		}
		return &planetest.Rig{
			New: func(t *testing.T) plane.Plane { return f },
			A:   stateA(), B: stateB(), Bad: bad(), BadOwner: planetest.Owner("bad"),
			Hostile: hostile(), Writes: f.Writes,
			Dump: func(*testing.T) string { return sorted(f.Lines()) },
			Text: func(s *plan.State) string {
				g := NewFake(testPorts)
				g.Grow(t.Context(), s)
				return sorted(g.Lines())
			},
			PutForeign:  func(*testing.T) { f.Foreign[plan.Flow{Bridge: "br0", Match: "udp"}] = "drop" },
			DumpForeign: func(*testing.T) string { return f.Foreign[plan.Flow{Bridge: "br0", Match: "udp"}] },
			DeleteOurs: func(*testing.T) {
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.flows, plan.Flow{Bridge: "br0", Priority: 100, Match: "arp"})
			},
		}
	})
}

func TestFlowOfAbsentPortWaitsAlone(t *testing.T) {
	s, _ := start(t)
	ports := fixedPorts{"eth0": 1}
	p := New(t.Context(), s.CommandPath("ovs-ofctl"), s.RunDir, ports, slog.New(slog.DiscardHandler))
	if err := p.Grow(t.Context(), stateA()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(dump(s, true), "actions"); got != 2 || len(p.Pending()) != 1 {
		t.Fatalf("%d flows and pending %v, want the two whose ports are there", got, p.Pending())
	}
	ports["patch-br0-default"] = 2
	if err := p.Grow(t.Context(), stateA()); err != nil || len(p.Pending()) != 0 {
		t.Fatalf("err %v, pending %v", err, p.Pending())
	}
	if have, want := normal(dump(s, true)), normal(dumped(stateA())); have != want {
		t.Fatalf("have\n%s\nwant\n%s", have, want)
	}
}

func TestUnparsableFlowIsRefusedAlone(t *testing.T) {
	s, p := start(t)
	st := stateA()
	st.Flows.Put(planetest.Owner("typo"), plan.Flow{Bridge: "br0", Priority: 100, Match: "foo"}, "drop")
	st.Flows.Put(planetest.Owner("typo2"), plan.Flow{Bridge: "br0", Priority: 100, Match: "udp"}, "nonsense")
	err := p.Grow(t.Context(), st)
	var owners []string
	for _, r := range plane.Refusals(err) {
		owners = append(owners, r.Owner.Feature)
	}
	slices.Sort(owners)
	if !slices.Equal(owners, []string{"typo", "typo2"}) {
		t.Fatalf("refused %v: %v", owners, err)
	}
	if have, want := normal(dump(s, true)), normal(dumped(stateA())); have != want {
		t.Fatalf("have\n%s\nwant\n%s", have, want)
	}
}

func TestRewriteKeepsCounters(t *testing.T) {
	s, p := start(t)
	drop := plan.Flow{Bridge: "br0", Priority: 100, Match: "ip,in_port={eth0}"}
	apply(t, p, stateA())
	s.Appctl("netdev-dummy/receive", "eth0",
		"in_port(1),eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a),eth_type(0x0800),"+
			"ipv4(src=10.0.0.1,dst=10.0.0.2,proto=1,tos=0,ttl=64,frag=no),icmp(type=8,code=0)")
	awaitPackets(t, p, drop, 1)
	apply(t, planeOn(t, s), stateA())
	if n, err := p.Packets(t.Context(), drop); err != nil || n != 1 {
		t.Fatalf("after a rewrite by a new process %d packets, %v; want 1", n, err)
	}
}

// TestRevalidated: ovs-vswitchd knows the command that is asked for, and one that does not run is no wait.
func TestRevalidated(t *testing.T) {
	s, p := start(t)
	if err := p.switches.awaitRevalidation(t.Context()); err != nil {
		t.Error(err)
	}
	s.KillVSwitchd()
	if err := p.switches.awaitRevalidation(t.Context()); err == nil {
		t.Error("no error without ovs-vswitchd")
	}
}

func TestRestartOfVSwitchd(t *testing.T) {
	s, p := start(t)
	apply(t, p, stateA())
	s.KillVSwitchd()
	p.Forget()
	if err := p.Grow(t.Context(), stateA()); err == nil || len(plane.Refusals(err)) > 0 {
		t.Fatalf("grow without ovs-vswitchd: %v, want an error that is nobody's fault", err)
	}
	s.StartVSwitchd()
	for p.Grow(t.Context(), stateA()) != nil {
		time.Sleep(5 * time.Millisecond)
	}
	if have, want := normal(dump(s, true)), normal(dumped(stateA())); have != want {
		t.Fatalf("have\n%s\nwant\n%s", have, want)
	}
}

func apply(t *testing.T, p *Plane, s *plan.State) {
	t.Helper()
	if err := plane.Apply(t.Context(), []plane.Plane{p}, s); err != nil {
		t.Fatal(err)
	}
}

func awaitPackets(t *testing.T, p *Plane, f plan.Flow, want uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for {
		n, err := p.Packets(ctx, f)
		if err != nil {
			t.Fatalf("flow %s: %v", f, err)
		}
		if n == want {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestOnlyOursAreDeleted: a flow of another program stays where a flow of ours, with the same match at another
// priority, or in another table, goes.
func TestOnlyOursAreDeleted(t *testing.T) {
	s, p := start(t)
	apply(t, p, state())
	want, none := state(), &plan.Rows{}
	flow := plan.Flow{Bridge: "br0", Priority: 100, Match: "udp,in_port={eth0}"}
	with := &plan.Rows{Flows: map[plan.Flow]string{flow: "drop"}}
	apply(t, p, want)
	want.Replace(planetest.Owner("o"), none, with)
	apply(t, p, want)
	s.Ofctl("add-flow", s.Mgmt("br0"), "cookie=0x5,priority=101,udp,in_port=1,actions=drop")
	// Somebody takes the flow over.
	s.Ofctl("add-flow", s.Mgmt("br0"), "cookie=0x5,priority=100,udp,in_port=1,actions=LOCAL")
	foreign := dump(s, false)
	want.Replace(planetest.Owner("o"), with, none)
	apply(t, p, want)
	if ours, others := dump(s, true), dump(s, false); ours != "" || others != foreign {
		t.Errorf("of ours is left\n%s\nof others\n%s\nwant\n%s", ours, others, foreign)
	}
}

// BenchmarkOneOf10000 changes one flow among ten thousand.
func BenchmarkOneOf10000(b *testing.B) {
	s := ovstest.Start(b, ovstest.Dummy)
	s.Vsctl("add-br", "br0", "--", "set", "bridge", "br0", "fail_mode=secure")
	p, st, many := planeOn(b, s), plan.New(), plan.Rows{}
	for i := range 10000 {
		f := plan.Flow{Bridge: "br0", Table: 1, Priority: 50, Match: fmt.Sprintf("tcp,tp_dst=%d", i)}
		plan.Add(&many.Flows, f, "drop")
	}
	st.Replace(planetest.Owner("many"), &plan.Rows{}, &many)
	pass := func() {
		if err := plane.Apply(b.Context(), []plane.Plane{p}, st); err != nil {
			b.Fatal(err)
		}
	}
	pass()
	old := &plan.Rows{}
	for i := 0; b.Loop(); i++ {
		f := plan.Flow{Bridge: "br0", Priority: 50, Match: fmt.Sprintf("udp,tp_dst=%d", i%60000)}
		now := &plan.Rows{Flows: map[plan.Flow]string{f: "drop"}}
		st.Replace(planetest.Owner("one"), old, now)
		pass()
		old = now
	}
}
