package all_test

import (
	"maps"
	"net/netip"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// TestStagesAreDocumented: the table that people read is the one that the features use.
func TestStagesAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../gateway/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range plan.Stages() {
		lines = append(lines, s.String())
	}
	if text := "```text\n" + strings.Join(lines, "\n") + "\n```\n"; !strings.Contains(string(readme), text) {
		t.Errorf("internal/feature/gateway/README.md has another table of the bridge's flows than\n%s", text)
	}
}

// TestStagesDiffer: a table's priority is of one purpose, and so of one feature.
func TestStagesDiffer(t *testing.T) {
	for _, s := range plan.Stages() {
		if at, ok := plan.StageAt(s.Table(), s.Priority()); !ok || at != s {
			t.Errorf("%q and %q are one place", s, at)
		}
	}
}

// TestFlowsAreClear: in worlds of all kinds each flow is in a stage of its feature, and where two flows of one table
// and priority can meet one packet, they do the same with it.
func TestFlowsAreClear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]world.GatewayMode{world.SharedGateway, world.LocalGateway}).Draw(t, "gateway mode")
		w := compiletest.Small("n1", mode)
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			compiletest.Change(t, w)
		}
		flows := map[plan.Flow]string{}
		for _, f := range all.Features() {
			own := maps.Collect(compile.Full(w, []compile.Feature{f}).Flows.Rows())
			for flow, actions := range own {
				checkStage(t, flow, path.Base(reflect.TypeOf(f).PkgPath()))
				if strings.Contains(actions, "mod_") {
					t.Errorf("%s: the switch would print %q with set_field, and a comparison tell of it", flow, actions)
				}
			}
			maps.Copy(flows, own)
		}
		checkClear(t, flows)
	})
}

// shared is the package of flows that several features have in common, which are the same whoever claims them.
const shared = "egress"

func checkStage(t *rapid.T, f plan.Flow, feature string) {
	s, ok := plan.StageAt(f.Table, f.Priority)
	if !ok || s.Feature() != feature && s.Feature() != shared {
		t.Fatalf("flow %s of feature %s is in no stage of that feature", f, feature)
	}
}

func checkClear(t *rapid.T, flows map[plan.Flow]string) {
	byStage := map[plan.Flow][]plan.Flow{}
	for f := range flows {
		place := f
		place.Match = ""
		byStage[place] = append(byStage[place], f)
	}
	for _, same := range byStage {
		for i, a := range same {
			for _, b := range same[:i] {
				if flows[a] != flows[b] && overlap(a.Match, b.Match) {
					t.Fatalf("OpenFlow does not say which one is taken:\n%s actions=%s\n%s actions=%s",
						a, flows[a], b, flows[b])
				}
			}
		}
	}
}

// overlap says whether a packet can have both matches, as far as can be told: unless a field says otherwise, it can.
func overlap(a, b string) bool {
	x, y := fields(a), fields(b)
	for key, v := range x {
		if w, ok := y[key]; ok && apart(key, v, w) {
			return false
		}
	}
	return true
}

// protocols are the words that stand for fields.
var protocols = map[string][2]string{
	"arp": {"arp", ""}, "ip": {"ip", ""}, "ipv6": {"ipv6", ""}, "icmp6": {"ipv6", "icmp6"},
	"tcp": {"ip", "tcp"}, "udp": {"ip", "udp"}, "sctp": {"ip", "sctp"},
	"tcp6": {"ipv6", "tcp"}, "udp6": {"ipv6", "udp"}, "sctp6": {"ipv6", "sctp"},
}

func fields(match string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(match, ",") {
		key, value, _ := strings.Cut(part, "=")
		if p, ok := protocols[key]; ok {
			out["ethernet type"] = p[0]
			if p[1] != "" {
				out["protocol"] = p[1]
			}
			continue
		}
		out[key] = value
	}
	return out
}

// apart says that no packet has both values of a field.
func apart(key, a, b string) bool {
	switch {
	case key == "ct_state":
		return statesApart(a, b) || statesApart(b, a)
	case key == "ct_mark":
		return marksApart(a, b)
	case slices.Contains([]string{"nw_src", "nw_dst", "ipv6_src", "ipv6_dst"}, key):
		x, y := prefix(a), prefix(b)
		return x.IsValid() && y.IsValid() && !x.Overlaps(y)
	}
	return a != b && !strings.Contains(a+b, "/")
}

// marksApart: "0x1/0x3" and "0x2/0x2" differ in a bit that both ask for.
func marksApart(a, b string) bool {
	x, of := number(a)
	y, by := number(b)
	return (x^y)&of&by != 0
}

// number reads "VALUE" or "VALUE/MASK".
func number(text string) (value, mask uint64) {
	v, m, masked := strings.Cut(text, "/")
	value, _ = strconv.ParseUint(v, 0, 32)
	if mask, _ = strconv.ParseUint(m, 0, 32); !masked {
		mask = 1<<32 - 1
	}
	return value, mask
}

// statesApart: "+trk+est-rpl" and "+rpl". Connections are either established, or new, or related.
func statesApart(a, b string) bool {
	for _, flag := range []string{"trk", "est", "rel", "new", "rpl"} {
		if strings.Contains(a, "+"+flag) && strings.Contains(b, "-"+flag) {
			return true
		}
	}
	return strings.Contains(a, "+new") && strings.Contains(b, "+est")
}

func prefix(text string) netip.Prefix {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	p, _ := netip.ParsePrefix(text)
	return p
}
