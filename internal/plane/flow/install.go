package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// refusal is a line that the switch does not take.
type refusal struct {
	line
	err error
}

// installLines adds lines in one bundle. A line that cannot be parsed is taken out by its number; when the switch
// refuses the bundle, halves are tried until the bad flow is alone. err is for a bridge that does not answer.
func (p *Plane) installLines(
	ctx context.Context, name string, generation uint32, lines []line,
) (refused []refusal, err error) {
	if len(lines) == 0 {
		return nil, nil
	}
	err = p.switches.sendBundle(ctx, name, additionLines(generation, lines))
	bad := (*commandError)(nil)
	switch {
	case err == nil:
		return nil, nil
	case !errors.As(err, &bad) || bad.isUnreachable():
		return nil, err
	case len(lines) == 1:
		return []refusal{{lines[0], err}}, nil
	}
	if n, ok := bad.lineNumber(); ok && n >= 1 && n <= len(lines) {
		rest, err := p.installLines(ctx, name, generation, slices.Delete(slices.Clone(lines), n-1, n))
		return append(rest, refusal{lines[n-1], bad}), err
	}
	half := len(lines) / 2
	left, err := p.installLines(ctx, name, generation, lines[:half])
	if err != nil {
		return left, err
	}
	right, err := p.installLines(ctx, name, generation, lines[half:])
	return append(left, right...), err
}

func additionLines(generation uint32, lines []line) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = additionLine(generation, l.text)
	}
	return out
}

func additionLine(generation uint32, text string) string {
	return "add cookie=" + generationCookie(generation) + "," + text
}

func generationCookie(generation uint32) string {
	return fmt.Sprintf("%#x", uint64(generation)<<32|Mark)
}

// usedGenerations are those of dumped flows, each once.
func usedGenerations(flows []string) []uint32 {
	var out []uint32
	for _, f := range flows {
		text, _, _ := strings.Cut(strings.TrimPrefix(f, "cookie=0x"), ",")
		c, err := strconv.ParseUint(text, 16, 64)
		if err == nil && !slices.Contains(out, uint32(c>>32)) {
			out = append(out, uint32(c>>32))
		}
	}
	slices.Sort(out)
	return out
}

// tablesOf are those of dumped flows.
func tablesOf(flows []string) map[int]bool {
	tables := map[int]bool{}
	for _, f := range flows {
		match, _, _ := strings.Cut(f, " actions=")
		_, after, _ := strings.Cut(match, "table=")
		number, _, _ := strings.Cut(after, ",")
		if n, err := strconv.Atoi(number); err == nil {
			tables[n] = true
		}
	}
	return tables
}

// unusedGeneration is the least generation that has no flows.
func unusedGeneration(used []uint32) uint32 {
	g := uint32(1)
	for slices.Contains(used, g) {
		g++
	}
	return g
}
