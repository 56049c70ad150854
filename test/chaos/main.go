// Command chaos disturbs a sandbox by a schedule that a seed gives, while pods send, and judges every packet.
//
//	go run ./test/chaos -for 30m -seed 7
//
// In: bin/ with the built programs, and root. Out: the seed, what was done and when, and a verdict; the exit status
// says whether it is good. schedule.go draws what happens (pure), faults.go does and undoes it, verdict.go judges
// (pure), run.go puts them together.
//
// Clocks are not stepped: Linux' time namespaces (time_namespaces(7)) have CLOCK_MONOTONIC and CLOCK_BOOTTIME only, and
// the nodes of a sandbox share the machine's CLOCK_REALTIME.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

func main() {
	o := sandbox.Defaults()
	o.Name, o.IPFamily, o.ExternalHosts = "chaos", sandbox.Dual, 1
	o.SecondaryNetworks = 1
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano())%100000,
		"`number` that the schedule is drawn by; another one each time")
	lasts := flag.Duration("for", 30*time.Minute, "`time` in which rounds begin")
	keep := flag.Bool("keep", false, "leave the sandbox up")
	flag.StringVar(&o.Name, "name", o.Name, "`name` of the sandbox")
	flag.StringVar((*string)(&o.GatewayMode), "gateway-mode", string(o.GatewayMode), "`mode`: shared or local")
	flag.StringVar(&o.BinDir, "bin", "bin", "`folder` of the built programs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := chaos(ctx, o, *seed, *lasts)
	if !*keep {
		err = errors.Join(err, sandbox.Down(o))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func chaos(ctx context.Context, o sandbox.Options, seed uint64, lasts time.Duration) (err error) {
	if o.BinDir, err = filepath.Abs(o.BinDir); err != nil {
		return err
	}
	fmt.Printf("seed %d, %s gateway mode, for %s\n", seed, o.GatewayMode, lasts)
	if err := sandbox.Down(o); err != nil { // what an interrupted run left
		return err
	}
	c, err := begin(ctx, o, os.Stdout)
	if err != nil {
		return err
	}
	r, err := newRun(ctx, c, os.Stdout)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for deadline, number := time.Now().Add(lasts), 1; time.Now().Before(deadline) && err == nil &&
		ctx.Err() == nil; number++ {
		err = r.round(ctx, number, random)
	}
	if err != nil {
		return err
	}
	if err := r.end(ctx); err != nil {
		return err
	}
	if len(r.failed) > 0 {
		return fmt.Errorf("seed %d: %d of what was asked for is not so", seed, len(r.failed))
	}
	r.say("seed %d: all is as it should be", seed)
	return nil
}
