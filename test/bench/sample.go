package main

import (
	"math"
	"slices"
	"time"
)

// sample is what the runs of one figure gave, in the figure's unit.
type sample []float64

func (s *sample) add(v float64) { *s = append(*s, v) }

func (s *sample) addTime(d time.Duration) { s.add(float64(d.Microseconds()) / 1000) }

// quantile is the value that a share q of the runs did not exceed: the nearest rank.
func (s sample) quantile(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(int(math.Ceil(q*float64(len(s))))-1, 0)]
}

// median is the middle value, or the mean of the two.
func (s sample) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
