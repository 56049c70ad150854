package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// result is one line.
type result struct {
	name, unit string
	// of is what a tally has its runs by ("": by its name), and over what it has those by whose median is the base.
	of, over string
	runs     sample
	// base is what the ratio is to: the floor, or another figure; 0 where there is none.
	base float64
	// value and ratio are goals for the median, p90 and max for the runs that took longest: at most so much; 0 where
	// there is none.
	value, ratio, p90, max float64
	// none is the goal that every run is 0.
	none bool
}

func printHeader(w io.Writer) {
	fmt.Fprintf(w, "%-60s %9s %-6s %9s %7s  %-28s %9s %9s %9s %5s\n", "FIGURE", "MEDIAN", "UNIT", "FLOOR", "RATIO",
		"GOAL", "MIN", "P90", "MAX", "RUNS")
}

func (r result) print(w io.Writer) {
	median := r.runs.median()
	base, ratio := "-", "-"
	if r.base > 0 {
		base, ratio = fmt.Sprintf("%.2f", r.base), fmt.Sprintf("%.2f", median/r.base)
	}
	fmt.Fprintf(w, "%-60s %9.2f %-6s %9s %7s  %-28s %9.2f %9.2f %9.2f %5d\n", r.name, median, r.unit, base, ratio,
		r.goal(),
		slices.Min(r.runs), r.runs.quantile(0.9), slices.Max(r.runs), len(r.runs))
}

// goal says what was to be reached, and whether it was.
func (r result) goal() string {
	var goals []string
	for _, g := range []struct {
		of         string
		have, most float64
		is         bool
	}{
		{"ratio", r.runs.median() / r.base, r.ratio, r.ratio > 0},
		{"", r.runs.median(), r.value, r.value > 0},
		{"p90", r.runs.quantile(0.9), r.p90, r.p90 > 0},
		{"max", r.runs.quantile(1), r.max, r.max > 0},
		{"max", r.runs.quantile(1), 0, r.none},
	} {
		if g.is {
			goals = append(goals, fmt.Sprintf("%s<=%g %s", g.of, g.most, met(g.have <= g.most)))
		}
	}
	if len(goals) == 0 {
		return "-"
	}
	return strings.Join(goals, ", ")
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}
