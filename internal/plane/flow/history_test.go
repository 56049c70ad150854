package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

// memory is switches in memory: flows by bridge and by what makes a flow one to a switch, with cookie and actions.
type memory struct {
	flows   map[string]map[string]entry
	bundles int
	sent    []string // of each bundle, its lines
	lines   int
	trouble func() (before, after error) // of the next bundle
}

type entry struct{ cookie, actions string }

func newMemory() *memory {
	return &memory{flows: map[string]map[string]entry{"br0": {}, "br1": {}}}
}

var errAway = &commandError{"failed to connect to socket"}

func (m *memory) listBridges() ([]string, error) { return slices.Collect(maps.Keys(m.flows)), nil }

func (m *memory) diffFlows(context.Context, string, []string) (string, error) { return "", nil }

func (m *memory) dumpFlows(_ context.Context, bridge, _ string) ([]string, error) {
	var out []string
	for match, e := range m.flows[bridge] {
		if strings.HasSuffix(e.cookie, fmt.Sprintf("%08x", Mark)) || e.cookie == fmt.Sprintf("%#x", Mark) {
			out = append(out, fmt.Sprintf("cookie=%s,%s actions=%s", e.cookie, match, e.actions))
		}
	}
	return out, nil
}

func (m *memory) countFlows(_ context.Context, bridge, cookie string) (int, error) {
	n := 0
	for _, e := range m.flows[bridge] {
		if e.cookie+"/-1" == cookie {
			n++
		}
	}
	return n, nil
}

func (m *memory) awaitRevalidation(context.Context) error {
	m.sent = append(m.sent, "revalidated")
	return nil
}

func (m *memory) sendBundle(_ context.Context, bridge string, lines []string) error {
	m.bundles++
	m.sent = append(m.sent, strings.Join(lines, "\n"))
	m.lines += len(lines)
	var before, after error
	if m.trouble != nil {
		before, after = m.trouble()
		m.trouble = nil
	}
	if before != nil {
		return before
	}
	now := maps.Clone(m.flows[bridge])
	for i, l := range lines {
		if err := carryOut(now, l); err != nil {
			return &commandError{fmt.Sprintf("-:%d: %v", i+1, err)}
		}
	}
	m.flows[bridge] = now
	return after
}

// carryOut is ovs-ofctl's part: "add cookie=0x1,MATCH actions=ACTIONS", "delete cookie=0x1/-1", "delete_strict
// cookie=0x1/-1,MATCH".
func carryOut(flows map[string]entry, l string) error {
	verb, rest, _ := strings.Cut(l, " cookie=")
	match, actions, _ := strings.Cut(rest, " actions=")
	cookie, match, _ := strings.Cut(match, ",")
	match = strings.TrimSuffix(match, ",")
	switch verb {
	case "add":
		if strings.Contains(match, "bad") {
			return errors.New("unknown field bad")
		}
		parts := strings.Split(match, ",")
		flows[strings.Join(slices.DeleteFunc(parts, isTime), ",")] = entry{cookie, actions}
	case "delete":
		maps.DeleteFunc(flows, func(_ string, e entry) bool { return e.cookie+"/-1" == cookie })
	case "delete_strict":
		if flows[match].cookie+"/-1" == cookie {
			delete(flows, match)
		}
	default:
		return fmt.Errorf("unknown command %q", verb)
	}
	return nil
}

// text is what the switches have of ours, or of others.
func (m *memory) text(ours bool) string {
	var out []string
	for name, flows := range m.flows {
		for match, e := range flows {
			if strings.HasSuffix(e.cookie, "deff105") == ours {
				out = append(out, name+" "+match+" actions="+e.actions)
			}
		}
	}
	return sorted(out)
}

// TestChangesEqualWhole: whatever changes in the plan and at the ports, however bundles fail, whoever deletes flows,
// and however often the switch and the process start anew: after one undisturbed pass the switches hold what a new
// plane writes, another pass has nothing to do, and flows of others are as they were.
func TestChangesEqualWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			h.step(t)
		}
		h.check(t)
	})
}

type history struct {
	switches *memory
	ports    fixedPorts
	plane    *Plane
	state    *plan.State
	rows     map[string]*plan.Rows
}

func newHistory() *history {
	h := &history{switches: newMemory(), ports: fixedPorts{"eth0": 1, "patch-br0-default": 2}}
	h.restart()
	return h
}

// restart is a new process.
func (h *history) restart() {
	h.plane = newPlane(h.switches, h.ports, slog.New(slog.DiscardHandler))
	h.state, h.rows = plan.New(), map[string]*plan.Rows{}
}

func (h *history) step(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "step") {
	case 0, 1, 2:
		h.change(t)
	case 3, 4:
		h.trouble(t)
		_ = h.apply(t)
	case 5:
		_ = h.plane.Grow(t.Context(), h.state)
	case 6:
		h.number(t)
	case 7:
		clear(h.switches.flows["br0"])
		clear(h.switches.flows["br1"])
		h.plane.Forget()
	case 8:
		h.restart()
	case 9:
		_ = h.plane.Renew(t.Context())
	}
}

func (h *history) change(t *rapid.T) {
	owner := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "owner")
	old, now := h.rows[owner], &plan.Rows{}
	if old == nil {
		old = &plan.Rows{}
	}
	for range rapid.IntRange(0, 6).Draw(t, "flows") {
		matches := []string{"", "in_port={eth0}", "ip,in_port={patch:default}", "arp,hard_timeout=20", "bad=1"}
		f := plan.Flow{
			Bridge: rapid.SampledFrom([]string{"br0", "br1"}).Draw(t, "bridge"),
			Table:  rapid.IntRange(0, 1).Draw(t, "table"),
			Match:  rapid.SampledFrom(matches).Draw(t, "match"),
		}
		plan.Add(&now.Flows, f, rapid.SampledFrom([]string{"drop", "output:{eth0}", "LOCAL"}).Draw(t, "actions"))
	}
	h.state.Replace(planetest.Owner(owner), old, now)
	h.rows[owner] = now
}

// trouble is that the next bundle is not applied, or its answer is lost.
func (h *history) trouble(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "trouble") {
	case 0:
		h.switches.trouble = func() (before, after error) { return errAway, nil }
	case 1:
		h.switches.trouble = func() (before, after error) { return nil, errAway }
	}
}

// number gives a port another number, or takes it away.
func (h *history) number(t *rapid.T) {
	name := rapid.SampledFrom([]string{"eth0", "patch-br0-default", "patch-br1-default"}).Draw(t, "port")
	if delete(h.ports, name); rapid.Bool().Draw(t, "is there") {
		h.ports[name] = len(name)*10 + rapid.IntRange(1, 9).Draw(t, "number")
	}
}

func (h *history) apply(t *rapid.T) error {
	return plane.Apply(t.Context(), []plane.Plane{h.plane}, h.state)
}

func (h *history) check(t *rapid.T) {
	h.switches.trouble = nil
	h.switches.flows["br0"]["table=0,priority=100,udp"] = entry{"0x5", "drop"}
	if err := h.apply(t); !plane.OnlyRefusals(err) {
		t.Fatal(err)
	}
	fresh := &history{switches: newMemory(), ports: h.ports}
	fresh.restart()
	fresh.state = h.state
	if err := fresh.apply(t); !plane.OnlyRefusals(err) {
		t.Fatal(err)
	}
	for _, p := range []*Plane{h.plane, fresh.plane} {
		if err := p.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if have, want := h.switches.text(true), fresh.switches.text(true); have != want {
		t.Fatalf("the switches have\n%s\nand a new plane writes\n%s", have, want)
	}
	if have := h.switches.text(false); have != "br0 table=0,priority=100,udp actions=drop" {
		t.Fatalf("flows of others: %s", have)
	}
	refused := len(plane.Refusals(h.apply(t)))
	before := h.switches.bundles
	if _ = h.apply(t); h.switches.bundles-before > 2*refused {
		t.Fatalf("an undisturbed pass wrote %d bundles with %d flows refused", h.switches.bundles-before, refused)
	}
}

// TestLostAnswerToADeletion: a flow whose deletion was carried out, and its answer lost, is there when it is wanted
// again.
func TestLostAnswerToADeletion(t *testing.T) {
	h := newHistory()
	none, one := &plan.Rows{}, &plan.Rows{}
	plan.Add(&one.Flows, plan.Flow{Bridge: "br0", Match: "udp"}, "drop")
	h.state.Replace(planetest.Owner("a"), none, one)
	apply(t, h.plane, h.state)
	h.switches.trouble = func() (before, after error) { return nil, errAway }
	h.state.Replace(planetest.Owner("a"), one, none)
	if err := plane.Apply(t.Context(), []plane.Plane{h.plane}, h.state); err == nil || h.switches.text(true) != "" {
		t.Fatalf("want it gone, and an error: %v\n%s", err, h.switches.text(true))
	}
	h.state.Replace(planetest.Owner("a"), none, one)
	apply(t, h.plane, h.state)
	if have := h.switches.text(true); have != "br0 table=0,priority=0,udp actions=drop" {
		t.Errorf("the switches have %q", have)
	}
}

// TestWhatEndedStaysAway: a flow that has ended by itself comes back by Renew alone, also when all flows of the bridge
// are written again, or a process starts anew. One that is new is there at once.
func TestWhatEndedStaysAway(t *testing.T) {
	const lease, other = "br0 table=0,priority=0,arp actions=drop", "br0 table=0,priority=0,udp actions=drop"
	one, both := &plan.Rows{}, &plan.Rows{}
	plan.Add(&one.Flows, plan.Flow{Bridge: "br0", Match: "udp"}, "drop")
	plan.Add(&both.Flows, plan.Flow{Bridge: "br0", Match: "udp"}, "drop")
	plan.Add(&both.Flows, plan.Flow{Bridge: "br0", Match: "arp,hard_timeout=20"}, "drop")
	h := newHistory()
	h.state.Replace(planetest.Owner("a"), &plan.Rows{}, one)
	apply(t, h.plane, h.state)
	has := func(when, want string) {
		t.Helper()
		if have := h.switches.text(true); have != want {
			t.Errorf("%s: the switches have\n%s\nwant\n%s", when, have, want)
		}
	}
	h.state.Replace(planetest.Owner("a"), one, both)
	apply(t, h.plane, h.state)
	has("new", lease+"\n"+other)
	for when, happens := range map[string]func(){
		"all is written again":      h.plane.Forget,
		"a port has another number": func() { h.plane.rewriteBridge("br0") },
		"a process that starts": func() {
			h.restart()
			h.state.Replace(planetest.Owner("a"), &plan.Rows{}, both)
		},
	} {
		delete(h.switches.flows["br0"], "table=0,priority=0,arp")
		happens()
		apply(t, h.plane, h.state)
		has(when, other)
		if err := h.plane.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		has(when+", renewed", lease+"\n"+other)
	}
}

// TestOnlyWhatChangedIsSent: one flow of many is one line to add, and one to delete.
func TestOnlyWhatChangedIsSent(t *testing.T) {
	h := newHistory()
	var many plan.Rows
	for i := range 1000 {
		plan.Add(&many.Flows, plan.Flow{Bridge: "br0", Match: fmt.Sprintf("tcp,tp_dst=%d", i)}, "drop")
	}
	h.state.Replace(planetest.Owner("many"), &plan.Rows{}, &many)
	apply(t, h.plane, h.state)
	if h.switches.lines != 1000 {
		t.Fatalf("at first %d lines were sent", h.switches.lines)
	}
	old := &plan.Rows{}
	for i, want := range []int{1, 2, 2} {
		now := &plan.Rows{}
		plan.Add(&now.Flows, plan.Flow{Bridge: "br0", Match: fmt.Sprintf("udp,tp_dst=%d", i)}, "drop")
		before := h.switches.lines
		h.state.Replace(planetest.Owner("one"), old, now)
		apply(t, h.plane, h.state)
		if sent := h.switches.lines - before; sent != want {
			t.Errorf("change %d took %d lines, want %d", i, sent, want)
		}
		old = now
	}
}

// TestEmptyTablesFirst: where all flows are written, the datapath knows those of tables that had none before others
// lead there. All others are one bundle. Nothing waits on a bridge that has had no flows.
func TestEmptyTablesFirst(t *testing.T) {
	h := newHistory()
	var rows plan.Rows
	rows.AddFlow("br0", plan.Outbound, "", "resubmit(,9)")
	rows.AddFlow("br0", plan.Established, "", "drop")
	h.state.Replace(planetest.Owner("one"), &plan.Rows{}, &rows)
	apply(t, h.plane, h.state)
	if slices.Contains(h.switches.sent, "revalidated") {
		t.Error("a bridge without flows was waited for")
	}
	rows.AddFlow("br0", plan.LetOut, "", "drop")
	for _, want := range []string{"table=9 | revalidated | table=0 table=1", "table=0 table=1 table=9"} {
		h.restart()
		h.switches.sent = nil
		h.state.Replace(planetest.Owner("one"), &plan.Rows{}, &rows)
		if err := h.plane.Grow(t.Context(), h.state); err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, bundle := range h.switches.sent {
			have = append(have, strings.Join(regexp.MustCompile(`\btable=\d|revalidated`).FindAllString(bundle, -1), " "))
		}
		if have := strings.Join(have, " | "); have != want {
			t.Errorf("bundles %s, want %s", have, want)
		}
	}
}

// TestOneBundle: what packets of an EgressIP's first address meet, and its reply lease, are one command.
func TestOneBundle(t *testing.T) {
	h := newHistory()
	var bare, rows plan.Rows
	bare.AddFlow("br0", plan.Inbound, "", "drop")
	h.state.Replace(planetest.Owner("bridge"), &plan.Rows{}, &bare)
	apply(t, h.plane, h.state)
	for _, at := range []plan.Stage{plan.ReplySize, plan.ReplyTooBig, plan.LeaseGate, plan.AnswerOpen} {
		rows.AddFlow("br0", at, "", "drop")
	}
	h.state.Replace(planetest.Owner("one"), &plan.Rows{}, &rows)
	before := h.switches.bundles
	apply(t, h.plane, h.state)
	if n := h.switches.bundles - before; n != 1 {
		t.Errorf("%d bundles, want one", n)
	}
}
