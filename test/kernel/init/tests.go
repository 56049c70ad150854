package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/test/kernel/boot"
)

func readOrders() (boot.Orders, error) {
	var o boot.Orders
	content, err := os.ReadFile(filepath.Join(boot.Share, boot.OrdersFile))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(content, &o)
}

// modules are those under test, loaded before any: the kernel would load some of them by itself when they are first
// asked for.
var modules = []string{"openvswitch", "vport_geneve", "geneve", "vrf", "dummy", "veth", "nf_conntrack", "nf_tables",
	"sctp", "bonding", "8021q"}

func prepare(kernel string) error {
	if err := unix.Sethostname([]byte("vm")); err != nil {
		return err
	}
	if err := os.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"); err != nil {
		return err
	}
	for _, args := range [][]string{append([]string{"modprobe", "--set-version", kernel, "--all"}, modules...),
		{"ip", "link", "set", "lo", "up"}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", args, err, out)
		}
	}
	return nil
}

// runTest runs one test program, and says how it ended as go test does.
func runTest(t boot.Test, out *os.File) int {
	start := time.Now()
	cmd := exec.Command(filepath.Join(boot.Share, "tests", t.File), "-test.v", "-test.run="+t.Run, "-test.timeout=20m")
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/tmp", out, out
	cmd.Env = append(os.Environ(), "HOME=/root", "EGRET_KERNEL=1")
	err := cmd.Run()
	took := time.Since(start).Seconds()
	var exit *exec.ExitError
	switch {
	case err == nil:
		fmt.Fprintf(out, "ok  \t%s\t%.3fs\n", t.Package, took)
		return 0
	case errors.As(err, &exit):
		fmt.Fprintf(out, "FAIL\t%s\t%.3fs\n", t.Package, took)
		return max(1, exit.ExitCode())
	default:
		fmt.Fprintf(out, "FAIL\t%s\t%v\n", t.Package, err)
		return 1
	}
}
