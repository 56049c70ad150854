package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/egret-net/egret/internal/sandbox/rootfs"
)

// suites are the packages whose tests run in the machine, and which of their tests.
func suites() []suite {
	return []suite{
		{Package: "./internal/sandbox", Run: "^TestNodeGroup"},
		{Package: "./internal/plane/nft", Run: "^TestKernelHolds"},
		{Package: "./internal/plane/route", Run: "^TestKernelHolds"},
		{Package: "./test/kernel/vm", Run: "."},
	}
}

func main() {
	limit := flag.Duration("timeout", time.Hour, "of the whole machine")
	only := flag.String("run", "", "in place of each package's own choice of tests, as go test -run")
	packages := flag.String("package", "", "only packages with this in their path")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	code, err := run(ctx, chosen(*packages, *only))
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-kernel:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func chosen(packages, tests string) []suite {
	var out []suite
	for _, s := range suites() {
		if !strings.Contains(s.Package, packages) {
			continue
		}
		if tests != "" {
			s.Run = tests
		}
		out = append(out, s)
	}
	return out
}

// run is a machine's whole life. The code is that of the first package that failed, or 0.
func run(ctx context.Context, chosen []suite) (code int, err error) {
	k, err := ensureKernel(ctx, filepath.Join(rootfs.CacheDir(), "kernel"))
	if err != nil {
		return 1, fmt.Errorf("kernel: %w", err)
	}
	dir, err := os.MkdirTemp("", "egret-kernel-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	m := machine{dir: dir, kernel: k, cache: rootfs.CacheDir(), out: os.Stdout}
	if err := m.fill(ctx, chosen); err != nil {
		return 1, err
	}
	return m.boot(ctx)
}
