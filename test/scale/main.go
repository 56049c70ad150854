package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
)

// address is the API server's, in a network namespace of the measurement's own (RFC 5737).
const address = "192.0.2.1"

// options are what is measured.
type options struct {
	bin   string // folder of the programs
	sizes []int  // of the clusters
	runs  int    // of each event
	pods  int    // beside the one agent
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "inside":
		err = inside(ctx, os.Args[2:])
	case len(os.Args) > 2 && os.Args[1] == "agent":
		err = soleAgent(ctx, os.Args[2])
	default:
		err = isolate(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// isolate runs this program again in a network namespace of its own, with the same flags.
func isolate(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{"inside"}, os.Args[1:]...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	return cmd.Run()
}

func inside(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := addressLoopback(); err != nil {
		return err
	}
	t := &table{out: os.Stdout}
	for _, n := range s.sizes {
		if err := s.measureCluster(ctx, n, t); err != nil {
			return fmt.Errorf("%d nodes: %w", n, err)
		}
	}
	t.printFormulas()
	if s.pods == 0 {
		return nil
	}
	return s.measureAgent(ctx)
}

func parse(args []string) (options, error) {
	s := options{}
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.StringVar(&s.bin, "bin", "bin", "`folder` of egret-controlplane and egret-controller")
	sizes := f.String("sizes", "100,300,1000", "`numbers` of nodes, formulas need three; none: only the agent")
	f.IntVar(&s.runs, "runs", 3, "`times` that each event is measured")
	f.IntVar(&s.pods, "pods", 50_000, "`number` of pods beside the one agent; 0: it is not measured")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	for text := range strings.FieldsFuncSeq(*sizes, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n <= hosts {
			return s, fmt.Errorf("-sizes %q: want numbers above %d", *sizes, hosts)
		}
		s.sizes = append(s.sizes, n)
	}
	bin, err := filepath.Abs(s.bin)
	s.bin = bin
	return s, err
}

// addressLoopback gives the namespace's loopback link the API server's address.
func addressLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address + "/32")
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetUp(lo), netlink.AddrAdd(lo, a))
}
