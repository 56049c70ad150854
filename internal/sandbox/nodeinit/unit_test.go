package nodeinit

import (
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// starter starts a unit for a test.
type starter func(*testing.T, Unit) *supervised

// All cases share one reaper, which waits for any child of the test process.
func TestUnits(t *testing.T) {
	wake := make(chan os.Signal, 1)
	signal.Notify(wake, unix.SIGCHLD)
	defer signal.Stop(wake)
	r := newReaper()
	go r.reapForever(wake)
	start := func(t *testing.T, u Unit) *supervised {
		s := &supervised{unit: u, logs: t.TempDir(), reaper: r, log: slog.New(slog.DiscardHandler),
			env: []string{"A=1"}}
		t.Cleanup(s.stopKeeping)
		s.startKeeping()
		return s
	}
	for name, test := range map[string]func(*testing.T, starter){
		"killed process comes back":                           comesBack,
		"stopped process stays away until started":            staysAway,
		"waits for what it needs":                             waitsForNeeds,
		"one-shot is tried until it succeeds and never again": oneShot,
		"prepares before each start, unless done":             prepares,
		"orphans are collected":                               orphansAreCollected,
		"is more urgent than other sessions":                  isUrgent,
	} {
		t.Run(name, func(t *testing.T) { test(t, start) })
	}
}

func comesBack(t *testing.T, start starter) {
	s := start(t, Unit{Name: "u", Args: []string{"/bin/sleep", "100"}})
	first := waitFor(t, s, "running", func(st Status) bool { return st.State == Running })
	began := time.Now()
	if err := s.killProcess(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := waitFor(t, s, "restarted", func(st Status) bool { return st.State == Running && st.PID != first.PID })
	if second.Restarts != 1 {
		t.Errorf("restarts %d, want 1", second.Restarts)
	}
	if d := time.Since(began); d < restartDelay {
		t.Errorf("came back after %s, want not before %s", d, restartDelay)
	}
}

func isUrgent(t *testing.T, start starter) {
	const nice = 5 // less than 0 is root's
	s := start(t, Unit{Name: "u", Args: []string{"/bin/sleep", "100"}, Nice: nice})
	pid := waitFor(t, s, "running", func(st Status) bool { return st.State == Running }).PID
	waitFor(t, s, "nice", func(Status) bool {
		own, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		return err == nil && own == 20-nice // as the system call has it
	})
	if _, err := os.Stat(autogroupPath(pid)); err != nil {
		t.Skip("this kernel does not group sessions")
	}
	waitFor(t, s, "in an urgent session", func(Status) bool {
		group, _ := os.ReadFile(autogroupPath(pid))
		return strings.HasSuffix(strings.TrimSpace(string(group)), " nice "+strconv.Itoa(nice))
	})
}

func staysAway(t *testing.T, start starter) {
	s := start(t, Unit{Name: "u", Args: []string{"/bin/sleep", "100"}})
	first := waitFor(t, s, "running", func(st Status) bool { return st.State == Running })
	s.stopKeeping()
	if st := s.currentStatus(); st.State != Stopped || st.PID != 0 {
		t.Errorf("after stop: %+v", st)
	}
	if syscall.Kill(first.PID, 0) == nil {
		t.Errorf("process %d lives after stop", first.PID)
	}
	if s.killProcess(syscall.SIGKILL) == nil {
		t.Error("kill of a stopped unit says nothing")
	}
	s.startKeeping()
	waitFor(t, s, "running again", func(st Status) bool { return st.State == Running })
}

func waitsForNeeds(t *testing.T, start starter) {
	need := filepath.Join(t.TempDir(), "socket")
	s := start(t, Unit{Name: "u", Args: []string{"/bin/sleep", "100"}, Needs: []string{need}})
	waitFor(t, s, "waiting", func(st Status) bool { return st.State == Waiting && strings.Contains(st.Note, need) })
	if err := os.WriteFile(need, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, "running", func(st Status) bool { return st.State == Running })
}

func oneShot(t *testing.T, start starter) {
	dir := t.TempDir()
	ran, mark := filepath.Join(dir, "ran"), filepath.Join(dir, "done/mark")
	script := "echo x >>" + ran + "; test $(wc -l <" + ran + ") = 2"
	u := Unit{Name: "u", Args: []string{"/bin/sh", "-c", script}, OneShot: true, Unless: mark}
	s := start(t, u)
	waitFor(t, s, "done", func(st Status) bool { return st.State == Done })
	again := start(t, u)
	waitFor(t, again, "done", func(st Status) bool { return st.State == Done })
	if content, _ := os.ReadFile(ran); string(content) != "x\nx\n" {
		t.Errorf("ran %q, want two lines", content)
	}
}

func prepares(t *testing.T, start starter) {
	dir := t.TempDir()
	file := filepath.Join(dir, "db")
	s := start(t, Unit{Name: "u", Args: []string{"/bin/sh", "-c", "test -s " + file + " && exec sleep 100"},
		Before: []Step{{Args: []string{"/bin/sh", "-c", "echo $A >>" + file}, Unless: file}}})
	st := waitFor(t, s, "running", func(st Status) bool { return st.State == Running })
	if err := s.killProcess(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, "restarted", func(now Status) bool { return now.State == Running && now.PID != st.PID })
	if content, _ := os.ReadFile(file); string(content) != "1\n" {
		t.Errorf("prepared %q, want once, with the unit's environment", content)
	}
}

func orphansAreCollected(t *testing.T, start starter) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	script := "(sleep 0.1 & echo $! >" + file + "); exec sleep 100"
	start(t, Unit{Name: "u", Args: []string{"/bin/sh", "-c", script}})
	deadline := time.Now().Add(5 * time.Second)
	for {
		content, _ := os.ReadFile(file)
		_, err := os.Stat("/proc/" + strings.TrimSpace(string(content)) + "/stat")
		if len(content) > 0 && err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("orphan %s is still there", content)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func waitFor(t *testing.T, s *supervised, what string, ok func(Status) bool) Status {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		st := s.currentStatus()
		if ok(st) {
			return st
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s: %+v", what, st)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
