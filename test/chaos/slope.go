package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
)

// sample is what the nodes held at a time, by name.
type sample struct {
	at   time.Time
	held map[string]float64
}

// takeSample measures the nodes for slopes. A node that cannot be asked is left out of this sample.
func (r *run) takeSample(ctx context.Context) {
	if held, err := r.cluster.measure(ctx); err == nil {
		r.samples = append(r.samples, sample{time.Now(), held})
	}
}

// tellSlopes prints by how much the memory of each program grew an hour. It says little of a program that was killed
// in between.
func (r *run) tellSlopes() {
	for _, name := range slices.Sorted(maps.Keys(r.was)) {
		if strings.HasPrefix(name, "memory") {
			r.say("  %s: %+.0f KiB an hour by %d samples", name, slope(r.samples, name)/1024, len(r.samples))
		}
	}
}

// slope returns by how much a number grew an hour, by the least squares of all samples.
func slope(samples []sample, name string) float64 {
	var n, x, y, xx, xy float64
	for _, s := range samples {
		hours, held := s.at.Sub(samples[0].at).Hours(), s.held[name]
		n, x, y, xx, xy = n+1, x+hours, y+held, xx+hours*hours, xy+hours*held
	}
	if n < 2 || n*xx == x*x {
		return 0
	}
	return (n*xy - x*y) / (n*xx - x*x)
}
