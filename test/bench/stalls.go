package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	// stallTick is how often the machine is asked whether it runs.
	stallTick = 10 * time.Millisecond
	// stallLeast is what counts: a late timer or two is nothing.
	stallLeast = 50 * time.Millisecond
	// realTime is a priority of SCHED_FIFO (sched(7)): above all that the cluster runs.
	realTime = 50
)

// stall is a time in which a core of this machine ran nothing, whatever its priority: a virtual machine was not given
// the core. No program in it can tell that from silence of others.
type stall struct {
	core  int
	ended time.Time
	took  time.Duration
}

func (s stall) String() string {
	return fmt.Sprintf("core %d for %s until %s", s.core, s.took.Round(time.Millisecond),
		s.ended.UTC().Format(time.RFC3339Nano))
}

// stalls looks for them until ctx ends, on all cores.
func stalls(ctx context.Context) ([]stall, error) {
	var mu sync.Mutex
	var found []stall
	all, ctx := errgroup.WithContext(ctx)
	for core := range runtime.NumCPU() {
		all.Go(func() error {
			some, err := watchCore(ctx, core)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, some...)
			return err
		})
	}
	err := all.Wait()
	return found, err
}

// watchCore ends with its thread: nobody else is to run on one of that priority.
func watchCore(ctx context.Context, core int) ([]stall, error) {
	runtime.LockOSThread()
	if err := standOn(core); err != nil {
		return nil, err
	}
	var found []stall
	for last := time.Now(); ctx.Err() == nil; {
		tick := unix.NsecToTimespec(int64(stallTick))
		_ = unix.Nanosleep(&tick, nil) // woken early by a signal, it only asks sooner
		now := time.Now()
		if took := now.Sub(last); took >= stallLeast {
			found = append(found, stall{core, now, took})
		}
		last = now
	}
	return found, nil
}

// standOn ties this thread to a core, before all that the cluster runs there.
func standOn(core int) error {
	var cores unix.CPUSet
	cores.Set(core)
	if err := unix.SchedSetaffinity(0, &cores); err != nil {
		return fmt.Errorf("core %d: %w", core, err)
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realTime}
	if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
		return fmt.Errorf("real-time priority: %w", err)
	}
	return nil
}

// longest is in milliseconds, 0 if there was none.
func longest(all []stall) float64 {
	most := time.Duration(0)
	for _, s := range all {
		most = max(most, s.took)
	}
	return float64(most.Microseconds()) / 1000
}
