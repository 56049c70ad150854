package cniserver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

const inside = "EGRET_TEST_INSIDE_NAMESPACES"

// TestMain runs the tests in a network and a mount namespace of their own: the server makes veths where it is.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 || os.Getenv(inside) != "" {
		code := m.Run()
		os.RemoveAll(pluginDir())
		os.Exit(code)
	}
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Env = append(os.Environ(), inside+"=1")
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	if err := child.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "tests in namespaces of their own:", err)
		os.Exit(1)
	}
}

var pluginDir = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "egret-cni")
	if err != nil {
		panic(err)
	}
	return dir
})

// buildPlugin builds the real plugin once and returns its folder.
var buildPlugin = sync.OnceValues(func() (string, error) {
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(pluginDir(), "egret-cni"),
		"github.com/egret-net/egret/cmd/egret-cni")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	return pluginDir(), nil
})
