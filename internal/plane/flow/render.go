package flow

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Ports knows OpenFlow port numbers by interface name.
type Ports interface {
	OFPort(name string) (int, bool)
	// PatchTo is the name of bridge's patch port to the other bridge: ovn-controller chooses it.
	PatchTo(bridge, other string) (string, bool)
}

// line is one flow as ovs-ofctl reads it, without cookie.
type line struct {
	flow  plan.Flow
	owner string
	text  string
}

// remembering asks once for what dozens of flows name: a look into the database's copy takes its time.
type remembering struct {
	Ports
	asked map[[2]string]found
}

type found struct {
	number int
	name   string
	ok     bool
}

func (r remembering) OFPort(name string) (int, bool) {
	f := r.remember("", name, func() (f found) { f.number, f.ok = r.Ports.OFPort(name); return f })
	return f.number, f.ok
}

func (r remembering) PatchTo(bridge, other string) (string, bool) {
	f := r.remember(bridge, other, func() (f found) { f.name, f.ok = r.Ports.PatchTo(bridge, other); return f })
	return f.name, f.ok
}

func (r remembering) remember(a, b string, ask func() found) found {
	key := [2]string{a, b}
	f, asked := r.asked[key]
	if !asked {
		f = ask()
		r.asked[key] = f
	}
	return f
}

var braces = regexp.MustCompile(`\{[^{}]*\}`)

// render turns the wanted flows into lines by bridge, sorted; flows that name a port that is not there are pending, and those that are no flows are
// refused.
func render(want plan.Table[plan.Flow, string], ports Ports) (lines map[string][]line, pending []plan.Flow, refused []error) {
	lines = map[string][]line{}
	ports = remembering{ports, map[[2]string]found{}}
	for f, actions := range want.Rows() {
		if err := check(f, actions); err != nil {
			refused = append(refused, &plane.Refused{Plane: planeName, Owner: want.Owner(f), Row: f.String(), Err: err})
			continue
		}
		text := fmt.Sprintf("table=%d,priority=%d,%s actions=%s", f.Table, f.Priority, f.Match, actions)
		text, ok := resolve(f.Bridge, text, ports)
		if !ok {
			pending = append(pending, f)
			continue
		}
		lines[f.Bridge] = append(lines[f.Bridge], line{f, want.Owner(f), text})
	}
	for _, l := range lines {
		slices.SortFunc(l, func(a, b line) int { return strings.Compare(a.text, b.text) })
	}
	slices.SortFunc(pending, func(a, b plan.Flow) int { return strings.Compare(a.String(), b.String()) })
	return lines, pending, refused
}

// resolve puts port numbers in place of `{name}`, `{LOCAL}` and `{patch:OTHER}` (the patch port to bridge OTHER;
// `{patch}` is the one to br-int). It fails when one of them is not there.
func resolve(bridge, text string, ports Ports) (string, bool) {
	ok := true
	text = braces.ReplaceAllStringFunc(text, func(name string) string {
		port, found := number(bridge, name[1:len(name)-1], ports)
		ok = ok && found
		return port
	})
	return text, ok
}

func number(bridge, name string, ports Ports) (string, bool) {
	if name == "LOCAL" {
		return "LOCAL", true
	}
	other, patch := strings.CutPrefix(name, "patch:")
	if name == "patch" {
		other, patch = "br-int", true
	}
	if patch {
		var ok bool
		if name, ok = ports.PatchTo(bridge, other); !ok {
			return "", false
		}
	}
	n, ok := ports.OFPort(name)
	return strconv.Itoa(n), ok
}
