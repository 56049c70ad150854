package main

import (
	"math"
	"testing"
)

// TestFit: a formula is found again from what it says, by three points and by more.
func TestFit(t *testing.T) {
	want := formula{5000, 300, 2}
	for _, sizes := range [][]int{{100, 200, 300}, {50, 100, 300, 1000}} {
		var points []point
		for _, n := range sizes {
			p := point{nodes: n}
			p.wire = int64(want.at(float64(n)))
			points = append(points, p)
		}
		got := fit(points, func(p point) float64 { return float64(p.wire) })
		for i := range want {
			if math.Abs(got[i]-want[i]) > 0.01*want[i] {
				t.Errorf("of %v: %v, want %v", sizes, got, want)
			}
		}
	}
}

// TestResourceOf: bytes are counted for the resource that a path names.
func TestResourceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/nodes":                            "nodes",
		"/api/v1/nodes/a":                          "nodes",
		"/api/v1/namespaces/a":                     "namespaces",
		"/api/v1/namespaces/a/pods/b":              "pods",
		"/apis/egret.k8s.ovn.org/v1/egressnodes/a": "egressnodes",
		"/apis/discovery.k8s.io/v1/endpointslices": "endpointslices",
		"/readyz": "/readyz",
	} {
		if got := resourceOf(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
