package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// compiles runs the Go benchmarks of a full compile and of a one-pod update: 500 nodes, 10,000 pods, 1,000 EgressIPs.
func compiles(ctx context.Context, l *lab) error {
	l.say("compile: go test -bench in internal/compile")
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^(BenchmarkFull|BenchmarkOnePod)$", "-count", "5", "./internal/compile").Output()
	if err != nil {
		return fmt.Errorf("go test -bench (run this from the repository's top folder): %w\n%s", err, out)
	}
	full, pod := benchmark(string(out), "BenchmarkFull"), benchmark(string(out), "BenchmarkOnePod")
	if len(full) == 0 || len(pod) == 0 {
		return fmt.Errorf("go test -bench printed no figures:\n%s", out)
	}
	l.report(result{name: "compile/full", unit: "ms", runs: full, value: 100})
	l.report(result{name: "compile/one-pod", unit: "ms", runs: pod, value: 1})
	return nil
}

// benchmark finds the ns/op of a benchmark's lines ("BenchmarkFull-2  33  41000000 ns/op"), in milliseconds.
func benchmark(output, name string) sample {
	var s sample
	for line := range strings.Lines(output) {
		var rest string
		var times int
		var nanoseconds float64
		if n, _ := fmt.Sscanf(line, name+"%s %d %f ns/op", &rest, &times, &nanoseconds); n == 3 {
			s.add(nanoseconds / 1e6)
		}
	}
	return s
}
