package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inPrivateMounts tells the test program that it was started in a mount namespace of its own.
const inPrivateMounts = "EGRET_TEST_PRIVATE_MOUNTS"

// TestNetnsBesideIP makes and deletes a namespace on a machine where "ip netns add" is called for the first time in
// between. The machine is a mount namespace with an empty /run, and so a process of its own: threads of one share their
// mounts.
func TestNetnsBesideIP(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces and mounts")
	}
	if os.Getenv(inPrivateMounts) != "" {
		netnsBesideIP(t)
		return
	}
	again := exec.Command(os.Args[0], "-test.run=^TestNetnsBesideIP$", "-test.v")
	again.Env = append(os.Environ(), inPrivateMounts+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS} // Go makes all mounts private with it
	out, err := again.CombinedOutput()
	t.Logf("\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func netnsBesideIP(t *testing.T) {
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	const name = "test-n1"
	makeNetns(t, name)
	ipNetns(t, "add", "somebody-else")
	if err := deleteNetns(name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(netnsPath(name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the name is left: %v", err)
	}
	makeNetns(t, name)
	if !isNetns("somebody-else") {
		t.Error("the other's namespace is gone")
	}
}

func makeNetns(t *testing.T, name string) {
	t.Helper()
	if made, err := ensureNetns(name); err != nil || !made || !isNetns(name) {
		t.Fatalf("made %v, %v", made, err)
	}
}

func ipNetns(t *testing.T, verb, name string) {
	t.Helper()
	if out, err := exec.Command("ip", "netns", verb, name).CombinedOutput(); err != nil {
		t.Errorf("ip netns %s %s: %v\n%s", verb, name, err, out)
	}
}
