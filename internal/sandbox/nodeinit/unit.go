package nodeinit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	logDir       = "/var/log/egret"
	logLimit     = 64 << 20               // bytes; a longer log starts again when its process does
	restartDelay = 300 * time.Millisecond // systemd's RestartSec of 100 ms plus the start of the unit
	needsPoll    = 50 * time.Millisecond
)

// States of a unit.
const (
	Waiting = "waiting" // for what it needs
	Running = "running"
	Failed  = "failed" // between an end and the next start
	Stopped = "stopped"
	Done    = "done" // a one-shot that succeeded
)

// Status is one unit as the control socket shows it.
type Status struct {
	Name     string    `json:"name"`
	State    string    `json:"state"`
	PID      int       `json:"pid,omitempty"` // in the node's pid namespace
	Restarts int       `json:"restarts"`      // starts but the first
	Started  time.Time `json:"started,omitzero"`
	Note     string    `json:"note,omitempty"` // its pending condition, or how it ended
}

// supervised keeps one unit running.
type supervised struct {
	unit   Unit
	env    []string
	logs   string // folder
	reaper *reaper
	log    *slog.Logger

	mu     sync.Mutex
	status Status
	cancel context.CancelFunc // of run; nil when stopped
	done   chan struct{}      // closed when run has returned
}

// startKeeping begins keeping the unit running; it has no effect on one that is.
func (s *supervised) startKeeping() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan struct{})
	go s.keepRunning(ctx, s.done)
}

// stopKeeping ends the unit (SIGTERM, after 5 s SIGKILL) and keeps it from being started again.
func (s *supervised) stopKeeping() {
	s.mu.Lock()
	cancel, done := s.cancel, s.done
	s.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-done
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = nil
	s.status.State, s.status.PID, s.status.Note = Stopped, 0, ""
}

// killProcess sends a signal to the unit's process.
func (s *supervised) killProcess(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.PID == 0 {
		return fmt.Errorf("%s has no process: it is %s %s", s.unit.Name, s.status.State, s.status.Note)
	}
	return syscall.Kill(s.status.PID, signal)
}

func (s *supervised) currentStatus() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *supervised) setStatus(state, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.State, s.status.Note = state, note
}

// keepRunning starts the unit again and again until ctx ends or it is done.
func (s *supervised) keepRunning(ctx context.Context, done chan struct{}) {
	defer close(done)
	for {
		err := s.runOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && s.unit.OneShot:
			s.setStatus(Done, "")
			return
		case err == nil:
			err = fmt.Errorf("exit status 0")
		}
		s.log.Warn("unit ended", "unit", s.unit.Name, "how", err)
		s.setStatus(Failed, err.Error())
		if !sleepUnlessDone(ctx, restartDelay) {
			return
		}
	}
}

// runOnce waits for what the unit needs, prepares and runs it to its end. nil is an end with exit status 0.
func (s *supervised) runOnce(ctx context.Context) error {
	if s.unit.OneShot && s.unit.Unless != "" && fileExists(s.unit.Unless) {
		return nil
	}
	if err := s.waitForNeeds(ctx); err != nil {
		return err
	}
	log, err := openLog(filepath.Join(s.logs, s.unit.Name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	for _, step := range s.unit.Before {
		if step.Unless != "" && fileExists(step.Unless) {
			continue
		}
		if err := s.runCommand(ctx, step.Args, log, false); err != nil {
			return fmt.Errorf("%s: %w", step.Args[0], err)
		}
	}
	if err := s.runCommand(ctx, s.unit.Args, log, true); err != nil {
		return err
	}
	if s.unit.OneShot && s.unit.Unless != "" {
		return touchFile(s.unit.Unless)
	}
	return nil
}

// runCommand runs args to their end; the unit's own command is the one whose pid is shown.
func (s *supervised) runCommand(ctx context.Context, args []string, log *os.File, own bool) error {
	pid, ended, err := s.reaper.startProcess(args, s.env, log)
	if err != nil {
		return err
	}
	if own {
		s.noteStarted(pid)
		defer s.endedNow()
		if err := setNice(pid, s.unit.Nice); err != nil {
			s.log.Warn("unit runs as urgently as others", "unit", s.unit.Name, "error", err)
		}
	}
	select {
	case status := <-ended:
		return exitError(status)
	case <-ctx.Done():
		terminateProcess(pid, ended)
		return ctx.Err()
	}
}

func (s *supervised) noteStarted(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.status.Started.IsZero() {
		s.status.Restarts++
	}
	s.status.State, s.status.Note, s.status.PID, s.status.Started = Running, "", pid, time.Now()
}

func (s *supervised) endedNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.PID = 0
}

func (s *supervised) waitForNeeds(ctx context.Context) error {
	for _, path := range s.unit.Needs {
		for !fileExists(path) {
			s.setStatus(Waiting, "for "+path)
			if !sleepUnlessDone(ctx, needsPoll) {
				return ctx.Err()
			}
		}
	}
	return nil
}

func terminateProcess(pid int, ended <-chan syscall.WaitStatus) {
	_ = syscall.Kill(pid, syscall.SIGTERM) // fails only if it has ended, which is what is wanted
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-ended
	}
}

func exitError(status syscall.WaitStatus) error {
	switch {
	case status.Exited() && status.ExitStatus() == 0:
		return nil
	case status.Signaled():
		return fmt.Errorf("killed by %s", status.Signal())
	default:
		return fmt.Errorf("exit status %d", status.ExitStatus())
	}
}

func openLog(file string) (*os.File, error) {
	if info, err := os.Stat(file); err == nil && info.Size() > logLimit {
		if err := os.Rename(file, file+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

func touchFile(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, nil, 0o644)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sleepUnlessDone reports false if ctx ended first.
func sleepUnlessDone(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
