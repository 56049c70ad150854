package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDaemonInheritsNothing: a lock that the caller of egret-sandbox holds is free when the caller has ended.
func TestDaemonInheritsNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a network namespace")
	}
	const name = "selftest-n9"
	if _, err := ensureNetns(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deleteNetns(name); err != nil {
			t.Error(err)
		}
	})
	lock := filepath.Join(t.TempDir(), "lock")
	inherited, err := unix.Open(lock, unix.O_CREAT|unix.O_RDWR, 0o600) // without O_CLOEXEC, as one from a parent is
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	p, err := startDaemon(name, exec.Command("sleep", "100"), filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := killAndWait([]process{p}); err != nil {
			t.Error(err)
		}
	})
	if open := openFiles(t, p.pid); slices.Contains(open, lock) {
		t.Errorf("the daemon has %v open", open)
	}
}

func openFiles(t *testing.T, pid int) []string {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil {
			out = append(out, target)
		}
	}
	return out
}
