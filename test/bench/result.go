package main

import (
	"fmt"
	"io"
	"slices"
)

// result is one line.
type result struct {
	name, unit string
	runs       sample
	// base is what the ratio is to: the floor, or another figure; 0 where there is none.
	base float64
	// value and ratio are the goals: at most so much; 0 where there is none.
	value, ratio float64
}

func printHeader(w io.Writer) {
	fmt.Fprintf(w, "%-44s %9s %-6s %9s %7s  %-16s %9s %9s %9s %5s\n", "FIGURE", "MEDIAN", "UNIT", "FLOOR", "RATIO", "GOAL", "MIN", "P90", "MAX", "RUNS")
}

func (r result) print(w io.Writer) {
	median := r.runs.median()
	base, ratio, goal := "-", "-", "-"
	if r.base > 0 {
		base, ratio = fmt.Sprintf("%.2f", r.base), fmt.Sprintf("%.2f", median/r.base)
	}
	switch {
	case r.ratio > 0:
		goal = fmt.Sprintf("ratio<=%g %s", r.ratio, met(median <= r.ratio*r.base))
	case r.value > 0:
		goal = fmt.Sprintf("<=%g %s", r.value, met(median <= r.value))
	}
	fmt.Fprintf(w, "%-44s %9.2f %-6s %9s %7s  %-16s %9.2f %9.2f %9.2f %5d\n", r.name, median, r.unit, base, ratio, goal,
		slices.Min(r.runs), r.runs.quantile(0.9), slices.Max(r.runs), len(r.runs))
}

func met(ok bool) string {
	if ok {
		return "met"
	}
	return "MISSED"
}
