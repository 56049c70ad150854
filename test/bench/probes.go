package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egret-net/egret/internal/probe"
)

const (
	probedNodes = 200
	probingTime = 10 * time.Second
)

// probes measures what it costs the controller to probe 200 nodes at the default timeout, in percent of one core: user
// and system time of this process. The nodes are addresses of loopback; their health services run in a process of their
// own. The kernel's work for both ends of a loopback connection is counted here, which flatters nobody.
func probes(ctx context.Context, l *lab) error {
	runs := max(3, l.runs/10)
	l.say("probes: %d nodes on loopback, %d times %v for each kind", probedNodes, runs, probingTime)
	var knocking, streaming sample
	for range runs {
		cost, err := probing(ctx, 0)
		if err != nil {
			return err
		}
		knocking.add(cost)
		err = withAgents(ctx, func(port int) error {
			cost, err := probing(ctx, port)
			streaming.add(cost)
			return err
		})
		if err != nil {
			return err
		}
	}
	l.report(result{name: "probes/200-nodes/port-9", unit: "% core", runs: knocking, value: 5})
	l.report(result{name: "probes/200-nodes/grpc", unit: "% core", runs: streaming, value: 5})
	return nil
}

func probedAddress(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 9, byte(i / 250), byte(1 + i%250)})
}

// probing probes for a while, and returns the cost. All nodes must have been alive all the time.
func probing(ctx context.Context, port int) (float64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var told, answers atomic.Int64
	p := probe.New(probe.Options{
		Self: "self", Total: time.Second, Grace: probe.DefaultGrace, Port: port, Log: slog.New(slog.DiscardHandler),
		RTT: func(time.Duration) { answers.Add(1) }, Tell: func(context.Context, probe.Change) { told.Add(1) },
	})
	var targets []probe.Target
	for i := range probedNodes {
		targets = append(targets, probe.Target{Node: strconv.Itoa(i), Addrs: []netip.Addr{probedAddress(i)}})
	}
	p.Follow(targets, probe.Witnesses{})
	failed := make(chan error, 1)
	go func() { failed <- p.Run(ctx) }()
	time.Sleep(3 * time.Second) // all sessions are up
	before := processorTime()
	select {
	case err := <-failed:
		return 0, err
	case <-time.After(probingTime):
	}
	cost := 100 * float64(processorTime()-before) / float64(probingTime)
	if told.Load() > 0 || answers.Load() < probedNodes {
		return 0, fmt.Errorf("port %d: %d answers, %d verdicts about nodes that live: is the machine overloaded?", port,
			answers.Load(), told.Load())
	}
	return cost, nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for no process
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// withAgents runs the health services of all nodes in another process.
func withAgents(ctx context.Context, f func(port int) error) error {
	c := exec.CommandContext(ctx, "/proc/self/exe", "answer")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	var port int
	if _, err := fmt.Fscan(bufio.NewReader(out), &port); err != nil {
		return fmt.Errorf("the health services did not start: %w", err)
	}
	return f(port)
}

// answer is the other process: it prints the port that all listen on.
func answer() error {
	group, ctx := errgroup.WithContext(context.Background())
	port := 0
	for i := range probedNodes {
		l, err := net.Listen("tcp", netip.AddrPortFrom(probedAddress(i), uint16(port)).String())
		if err != nil {
			return err
		}
		port = l.Addr().(*net.TCPAddr).Port
		group.Go(func() error { return probe.Serve(ctx, l, probe.Files{}, slog.New(slog.DiscardHandler)) })
	}
	fmt.Println(port)
	return group.Wait()
}
