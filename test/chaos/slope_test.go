package main

import (
	"math"
	"testing"
	"time"
)

// TestSlope: least squares of four samples; one sample has no slope.
func TestSlope(t *testing.T) {
	var samples []sample
	for i, held := range []float64{100, 103, 103, 106} {
		at := time.Unix(0, 0).Add(time.Duration(i) * 10 * time.Minute)
		samples = append(samples, sample{at, map[string]float64{"memory": held}})
	}
	if have := slope(samples, "memory"); math.Abs(have-10.8) > 1e-6 {
		t.Errorf("%v an hour, want 10.8", have)
	}
	if have := slope(samples[:1], "memory"); have != 0 {
		t.Errorf("%v an hour by one sample", have)
	}
}
