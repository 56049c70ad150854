package sandbox

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// startInit starts a node's first process in the node's network namespace and fresh namespaces of all other kinds.
func startInit(n node) (process, error) {
	for _, dir := range []string{n.etcDir(), n.logDir(), filepath.Join(n.diskDir(), "containerd"),
		filepath.Join(n.diskDir(), "kubelet")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return process{}, err
		}
	}
	cmd := exec.Command(n.layout.options.binaryPath("egret-sandbox"), "init", n.specFile())
	cmd.Env = n.initEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	return startDaemon(n.netns, cmd, filepath.Join(n.stateDir(), "init.log"))
}

// startDaemon starts cmd in a network namespace, with its output appended to a file, so that it outlives this process.
func startDaemon(netns string, cmd *exec.Cmd, logFile string) (process, error) {
	if err := os.MkdirAll(filepath.Dir(logFile), 0o755); err != nil {
		return process{}, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return process{}, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true // an interrupt of the terminal is not for it
	// Files that this process inherited itself are not for it either: a lock of flock(1) would be held until the
	// sandbox is down.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return process{}, fmt.Errorf("keep descriptors from %s: %w", filepath.Base(cmd.Path), err)
	}
	if err := InNetns(netns, cmd.Start); err != nil {
		return process{}, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	p, err := identifyProcess(cmd.Process.Pid)
	if err != nil {
		return process{}, fmt.Errorf("%s ended at once, see %s: %w", filepath.Base(cmd.Path), logFile, err)
	}
	go func() { _ = cmd.Wait() }() // collects it if it ends before this process does
	return p, nil
}
