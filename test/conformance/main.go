package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// settings are what the command line says.
type settings struct {
	sandbox     sandbox.Options
	focus, skip string
	procs       int
	limit       time.Duration
	out         string
	keep        bool
}

func main() {
	s := settings{sandbox: sandbox.Defaults()}
	s.sandbox.Name = "conformance"
	flag.StringVar(&s.sandbox.Name, "name", s.sandbox.Name, "name of the sandbox")
	flag.StringVar((*string)(&s.sandbox.GatewayMode), "gateway-mode", string(sandbox.Shared), "shared or local")
	flag.StringVar((*string)(&s.sandbox.IPFamily), "ip-family", string(sandbox.Dual), "ipv4, ipv6 or dual")
	flag.StringVar(&s.focus, "focus", `\[sig-network\]`, "specs to run, a `regular expression`")
	flag.StringVar(&s.skip, "skip", "", "specs to leave out besides those that cannot run here, a `regular expression`")
	flag.IntVar(&s.procs, "procs", 4, "specs that run at a `time`")
	flag.DurationVar(&s.limit, "timeout", 3*time.Hour, "of the whole suite")
	flag.StringVar(&s.out, "out", "bin/conformance", "`folder` for the suite's own output")
	flag.BoolVar(&s.keep, "keep", false, "leave the sandbox up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, err := run(ctx, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	if err != nil || !passed {
		os.Exit(1)
	}
}

// run is a whole run: sandbox, suite, report.
func run(ctx context.Context, s settings) (passed bool, err error) {
	if s.out, err = filepath.Abs(s.out); err != nil {
		return false, err
	}
	if s.sandbox.BinDir, err = filepath.Abs("bin"); err != nil {
		return false, err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return false, err
	}
	c, err := sandbox.Up(ctx, s.sandbox, os.Stderr)
	if !s.keep {
		defer func() { err = errors.Join(err, sandbox.Down(s.sandbox)) }()
	}
	if err != nil {
		return false, err
	}
	su := suite{settings: s, cluster: c}
	specs, err := su.run(ctx)
	if err != nil {
		return false, err
	}
	return report(os.Stdout, specs), nil
}
