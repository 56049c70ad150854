package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
)

// figure is a group of figures that are measured together.
type figure struct {
	name    string
	measure func(context.Context, *lab) error
}

func figures() []figure {
	return []figure{
		{"compile", compiles},
		{"first-packet", firstPackets},
		{"join", joins},
		{"add", adds},
		{"memory", memory},
		{"statuses", statuses},
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "send" { // in a pod's network namespace
		exit(send(os.Args[2:]))
	}
	run := flag.String("run", "*", "figures to measure, by shell patterns: first-packet,join")
	runs := flag.Int("runs", 30, "`times` that a figure is measured")
	keep := flag.Bool("keep", false, "leave the sandboxes up, for the next time")
	name := flag.String("name", "bench", "start of the sandboxes' names")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l := &lab{name: *name, runs: *runs, keep: *keep, out: os.Stdout, log: os.Stderr}
	exit(measure(ctx, l, strings.Split(*run, ",")))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measure runs the chosen figures. One that fails does not keep the others from being measured.
func measure(ctx context.Context, l *lab, patterns []string) (err error) {
	defer l.close()
	printHeader(l.out)
	chosen := 0
	for _, f := range figures() {
		if !matches(f.name, patterns) {
			continue
		}
		chosen++
		if e := f.measure(ctx, l); e != nil {
			err = fmt.Errorf("%s: %w", f.name, e)
			fmt.Fprintln(l.log, "bench:", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if chosen == 0 {
		return fmt.Errorf("no figure is called %v", patterns)
	}
	return err
}

func matches(name string, patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}
