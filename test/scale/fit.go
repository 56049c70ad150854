package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "# "+format+"\n", args...) }

// extrapolated is the number of nodes that formulas are evaluated for.
const extrapolated = 5000

// point is what one event cost in a cluster of one size.
type point struct {
	nodes int
	measured
}

// table prints what is measured, and fits formulas to it.
type table struct {
	out    io.Writer
	events []string
	points map[string][]point
}

func (t *table) add(nodes int, event string, m measured) {
	if t.points == nil {
		t.points = map[string][]point{}
		fmt.Fprintf(t.out, "%-26s %6s %12s %11s %12s %9s %9s %9s %8s\n", "EVENT", "NODES", "BYTES", "A NODE",
			"CONTROLLER", "CPU PLANE", "CPU CONTR", "CPU NODE", "TOOK")
	}
	if !slices.Contains(t.events, event) {
		t.events = append(t.events, event)
	}
	t.points[event] = append(t.points[event], point{nodes, m})
	n := float64(nodes)
	fmt.Fprintf(t.out, "%-26s %6d %12d %11.0f %12d %7.0fms %7.0fms %7.2fms %6dms\n", event, nodes, m.wire,
		float64(m.wire)/n, m.controller, 1000*m.controlPlane, 1000*m.decides, 1000*m.follows/n, m.took.Milliseconds())
	fmt.Fprintf(t.out, "%-26s %6s bytes a node in bodies: %s\n", "", "", byResource(m.bodies, n))
}

// byResource says of which resources the bodies were, before compression.
func byResource(bodies map[string]int64, nodes float64) string {
	var parts []string
	names := slices.SortedFunc(maps.Keys(bodies), func(a, b string) int { return int(bodies[b] - bodies[a]) })
	for _, name := range names {
		if each := float64(bodies[name]) / nodes; each >= 1 {
			parts = append(parts, fmt.Sprintf("%s %.0f", name, each))
		}
	}
	return strings.Join(parts, ", ")
}

// printFormulas fits bytes. Processor times vary too much from run to run for a square in them to say anything.
func (t *table) printFormulas() {
	for _, event := range t.events {
		points := t.points[event]
		if len(points) < 3 {
			continue
		}
		for _, of := range []struct {
			what  string
			value func(point) float64
		}{
			{"bytes to agents", func(p point) float64 { return float64(p.wire) }},
			{"bytes to the controller", func(p point) float64 { return float64(p.controller) }},
		} {
			f := fit(points, of.value)
			fmt.Fprintf(t.out, "%-26s %-24s = %.4g + %.4g*n + %.4g*n^2, at %d nodes %.4g\n", event, of.what,
				f[0], f[1], f[2], extrapolated, f.at(extrapolated))
		}
	}
}

// formula is a + b*n + c*n^2.
type formula [3]float64

func (f formula) at(n float64) float64 { return f[0] + f[1]*n + f[2]*n*n }

// fit finds the formula with the least squares of relative errors, which is exact for three points.
func fit(points []point, value func(point) float64) formula {
	var m [3][4]float64 // normal equations
	for _, p := range points {
		n, y := float64(p.nodes), value(p)
		weight := 1 / max(y*y, 1)
		row := [3]float64{1, n, n * n}
		for i := range row {
			for j := range row {
				m[i][j] += weight * row[i] * row[j]
			}
			m[i][3] += weight * row[i] * y
		}
	}
	return solve(m)
}

// solve is Gauss' elimination with the largest pivot.
func solve(m [3][4]float64) (f formula) {
	for i := range 3 {
		best := i
		for j := i + 1; j < 3; j++ {
			if m[j][i]*m[j][i] > m[best][i]*m[best][i] {
				best = j
			}
		}
		m[i], m[best] = m[best], m[i]
		for j := i + 1; j < 3; j++ {
			factor := m[j][i] / m[i][i]
			for k := i; k < 4; k++ {
				m[j][k] -= factor * m[i][k]
			}
		}
	}
	for i := 2; i >= 0; i-- {
		f[i] = m[i][3]
		for j := i + 1; j < 3; j++ {
			f[i] -= m[i][j] * f[j]
		}
		f[i] /= m[i][i]
	}
	return f
}
