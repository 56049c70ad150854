package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

var _ plane.Comparer = (*Plane)(nil)

// Compare is part of plane.Comparer: ovs-ofctl compares what the switch has with what it would write, in its own
// spelling. Flows whose ports are not there are missing as well.
func (p *Plane) Compare(ctx context.Context, want *plan.State) ([]plane.Difference, error) {
	var out []plane.Difference
	lines, numbers := map[string][]line{}, asked{}
	for f := range want.Flows.Rows() {
		l, ok, err := p.renderFlow(want, f, numbers)
		if !ok || err != nil {
			out = append(out, plane.Difference{Plane: planeName, Row: f.String(), Owner: l.owner, Missing: true})
			continue
		}
		lines[f.Bridge] = append(lines[f.Bridge], l)
	}
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		text, err := p.switches.diffFlows(ctx, name, numberLines(lines[name]))
		if err != nil {
			return nil, fmt.Errorf("compare the flows of bridge %s: %w", name, err)
		}
		out = append(out, flowDifferences(name, text, lines[name])...)
	}
	return out, nil
}

// numberLines gives each line its number as a cookie, from 1 on: ovs-ofctl prints it beside its own spelling of the
// flow.
func numberLines(lines []line) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = fmt.Sprintf("cookie=%d,%s", i+1, l.text)
	}
	return out
}

func (o ofctl) diffFlows(ctx context.Context, bridge string, flows []string) (string, error) {
	out, err := o.runCommand(ctx, strings.Join(flows, "\n")+"\n", "-O", "OpenFlow14", "diff-flows", o.socketOf(bridge),
		"/dev/stdin")
	if differ := (*commandError)(nil); errors.As(err, &differ) && differ.text == "" {
		return out, nil // exit status 2, and nothing to complain of
	}
	return out, err
}

var cookieText = regexp.MustCompile(` cookie=0x([0-9a-f]+)`)

// flowDifferences are what is left when the flows of ours are compared without their cookies, which tell only when they
// were written, and of wanted ones which line they are.
func flowDifferences(bridge, text string, wanted []line) []plane.Difference {
	missing, unwanted := map[string]plan.Owner{}, map[string]bool{}
	for l := range strings.Lines(text) {
		flow, cookie := strings.TrimSpace(cookieText.ReplaceAllString(l[1:], "")), cookieOf(l)
		switch {
		case l[0] == '+' && cookie >= 1 && cookie <= uint64(len(wanted)):
			missing[flow] = wanted[cookie-1].owner
		case l[0] == '-' && uint32(cookie) == Mark:
			unwanted[flow] = true
		}
	}
	var out []plane.Difference
	for flow, owner := range missing {
		if !unwanted[flow] {
			out = append(out, plane.Difference{Plane: planeName, Row: bridge + " " + flow, Owner: owner, Missing: true})
		}
	}
	for flow := range unwanted {
		if _, wanted := missing[flow]; !wanted {
			out = append(out, plane.Difference{Plane: planeName, Row: bridge + " " + flow})
		}
	}
	slices.SortFunc(out, plane.Difference.Compare)
	return out
}

// cookieOf returns the cookie of a line that ovs-ofctl printed, 0 if it has no cookie.
func cookieOf(flow string) uint64 {
	m := cookieText.FindStringSubmatch(flow)
	if m == nil {
		return 0
	}
	c, err := strconv.ParseUint(m[1], 16, 64)
	if err != nil {
		return 0
	}
	return c
}
