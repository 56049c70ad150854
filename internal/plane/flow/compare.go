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
// spelling.
func (p *Plane) Compare(ctx context.Context, want *plan.State) ([]plane.Difference, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines, numbers := map[string][]string{}, asked{}
	for f := range want.Flows.Rows() {
		if l, ok, err := p.render(want, f, numbers); ok && err == nil {
			lines[f.Bridge] = append(lines[f.Bridge], l.text)
		}
	}
	var out []plane.Difference
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		text, err := p.switches.diff(ctx, name, lines[name])
		if err != nil {
			return nil, fmt.Errorf("compare the flows of bridge %s: %w", name, err)
		}
		out = append(out, differences(name, text)...)
	}
	return out, nil
}

func (o ofctl) diff(ctx context.Context, bridge string, flows []string) (string, error) {
	out, err := o.run(ctx, strings.Join(flows, "\n")+"\n", "-O", "OpenFlow14", "diff-flows", o.socket(bridge), "/dev/stdin")
	if differ := (*commandError)(nil); errors.As(err, &differ) && differ.text == "" {
		return out, nil // exit status 2, and nothing to complain of
	}
	return out, err
}

var cookieText = regexp.MustCompile(` cookie=0x([0-9a-f]+)`)

// differences are what is left when the flows of ours are compared without their cookies, which tell only when they
// were written.
func differences(bridge, text string) []plane.Difference {
	missing, unwanted := map[string]bool{}, map[string]bool{}
	for l := range strings.Lines(text) {
		flow := strings.TrimSpace(cookieText.ReplaceAllString(l[1:], ""))
		switch {
		case l[0] == '+':
			missing[flow] = true
		case l[0] == '-' && isOurs(l):
			unwanted[flow] = true
		}
	}
	var out []plane.Difference
	for _, flow := range slices.Sorted(maps.Keys(missing)) {
		if !unwanted[flow] {
			out = append(out, plane.Difference{Plane: planeName, Row: bridge + " " + flow, Missing: true})
		}
	}
	for _, flow := range slices.Sorted(maps.Keys(unwanted)) {
		if !missing[flow] {
			out = append(out, plane.Difference{Plane: planeName, Row: bridge + " " + flow})
		}
	}
	return out
}

func isOurs(flow string) bool {
	m := cookieText.FindStringSubmatch(flow)
	if m == nil {
		return false
	}
	c, err := strconv.ParseUint(m[1], 16, 64)
	return err == nil && uint32(c) == Mark
}
