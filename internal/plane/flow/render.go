package flow

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Ports knows OpenFlow port numbers by interface name.
type Ports interface {
	OFPort(name string) (int, bool)
	// PatchInterface is the name of bridge's patch port to a logical network, be it there or not.
	PatchInterface(bridge, network string) string
}

// line is one flow as ovs-ofctl reads it, without cookie.
type line struct {
	flow    plan.Flow
	actions string // as the plan has them
	owner   plan.Owner
	text    string
}

// numbers are those of a bridge's ports, by their names in braces.
type numbers map[string]string

// asked are the numbers that one Grow goes by, by bridge. Each is asked for once: a look into the database's copy
// takes its time.
type asked map[string]map[string]found

type found struct {
	number string
	ok     bool
}

func (a asked) askNumber(bridge, name string, ports Ports) (string, bool) {
	f, known := a[bridge][name]
	if !known {
		f.number, f.ok = portNumber(bridge, name, ports)
		if a[bridge] == nil {
			a[bridge] = map[string]found{}
		}
		a[bridge][name] = f
	}
	return f.number, f.ok
}

// numbersOf are the numbers that were found for a bridge.
func (a asked) numbersOf(bridge string) numbers {
	n := numbers{}
	for name, f := range a[bridge] {
		if f.ok {
			n[name] = f.number
		}
	}
	return n
}

// renderFlow is a wanted flow as a line. ok is false while a port that it names is not there; err refuses what is no
// flow.
func (p *Plane) renderFlow(want *plan.State, f plan.Flow, a asked) (l line, ok bool, err error) {
	l = line{flow: f, owner: want.Flows.Owner(f)}
	l.actions, _ = want.Flows.Get(f)
	if err := checkFlow(f, l.actions); err != nil {
		return l, false, &plane.Refused{Plane: planeName, Owner: l.owner, Row: f.String(), Err: err}
	}
	number := func(name string) (string, bool) { return a.askNumber(f.Bridge, name, p.ports) }
	l.text, ok = resolveNames(flowText(f, l.actions), number)
	return l, ok, nil
}

func flowText(f plan.Flow, actions string) string {
	return fmt.Sprintf("table=%d,priority=%d,%s actions=%s", f.Table, f.Priority, f.Match, actions)
}

// writtenText is a flow that the bridge has as it was written.
func (b *bridge) writtenText(f plan.Flow, actions string) string {
	text, _ := resolveNames(flowText(f, actions), b.knownNumber)
	return text
}

// removalLine is the line that deletes a flow of the newest generation, and no other: without a time, which is no part
// of a match.
func (b *bridge) removalLine(f plan.Flow) string {
	l := fmt.Sprintf("delete_strict cookie=%s/-1,table=%d,priority=%d", generationCookie(b.newestGeneration()), f.Table,
		f.Priority)
	match, _ := resolveNames(f.Match, b.knownNumber)
	for part := range strings.SplitSeq(match, ",") {
		if part != "" && !isTime(part) {
			l += "," + part
		}
	}
	return l
}

func (b *bridge) knownNumber(name string) (string, bool) { n, ok := b.numbers[name]; return n, ok }

// expiresItself says that a flow ends by itself.
func expiresItself(f plan.Flow) bool {
	for part := range strings.SplitSeq(f.Match, ",") {
		if isTime(part) {
			return true
		}
	}
	return false
}

func isTime(part string) bool { return strings.HasPrefix(part, "hard_timeout=") }

var braces = regexp.MustCompile(`\{[^{}]*\}`)

// resolveNames puts numbers in place of names in braces. It fails when one of them is not there.
func resolveNames(text string, number func(name string) (string, bool)) (string, bool) {
	ok := true
	text = braces.ReplaceAllStringFunc(text, func(name string) string {
		port, found := number(name[1 : len(name)-1])
		ok = ok && found
		return port
	})
	return text, ok
}

// resolveNow goes by the numbers that ports have at present.
func resolveNow(bridge, text string, ports Ports) (string, bool) {
	return resolveNames(text, func(name string) (string, bool) { return portNumber(bridge, name, ports) })
}

// portNumber is that of a port by its name, or of LOCAL, or of patch:NETWORK, the patch port to a logical network.
func portNumber(bridge, name string, ports Ports) (string, bool) {
	if name == "LOCAL" {
		return "LOCAL", true
	}
	if network, patch := strings.CutPrefix(name, plan.Patch); patch {
		name = ports.PatchInterface(bridge, network)
	}
	n, ok := ports.OFPort(name)
	return strconv.Itoa(n), ok
}
