package nodeinit

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaper starts processes and collects every child that ends. The first process of a pid namespace inherits orphans
// (a container's shim outlives containerd), so it waits for any child; waiting for single ones, as os/exec does,
// would race with that.
type reaper struct {
	mu      sync.Mutex // held from fork to registration, so that an early end finds its listener
	waiting map[int]chan syscall.WaitStatus
}

func newReaper() *reaper { return &reaper{waiting: map[int]chan syscall.WaitStatus{}} }

// startProcess runs args with output appended to log, in a session of its own. The channel gets one value, when it
// ends.
func (r *reaper) startProcess(args, env []string, log *os.File) (pid int, ended <-chan syscall.WaitStatus, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err = syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	end := make(chan syscall.WaitStatus, 1)
	r.waiting[pid] = end
	return pid, end, nil
}

// reapForever collects children for ever; wake gets a value whenever there may be some (SIGCHLD).
func (r *reaper) reapForever(wake <-chan os.Signal) {
	for range wake {
		r.collectEnded()
	}
}

func (r *reaper) collectEnded() {
	for {
		r.mu.Lock()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, unix.WNOHANG, nil)
		end := r.waiting[pid]
		if pid > 0 {
			delete(r.waiting, pid)
		}
		r.mu.Unlock()
		if pid <= 0 || err != nil {
			return
		}
		if end != nil {
			end <- status
		}
	}
}
