package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestProcessesAreFoundByTheirMarker(t *testing.T) {
	l := newLayout(options(func(o *Options) { o.StateDir = t.TempDir() }))
	other := newLayout(options(func(o *Options) { o.StateDir = t.TempDir() }))
	ours := sleeper(t, markerOf(l))
	theirs := sleeper(t, markerOf(other))
	if err := endAll(l, nil); err != nil {
		t.Fatal(err)
	}
	if ours.isAlive() {
		t.Error("a process of the sandbox lives on")
	}
	if !theirs.isAlive() {
		t.Error("a process of another sandbox was killed")
	}
}

func TestAReusedPidIsNotTheProcess(t *testing.T) {
	p := sleeper(t, "A=1")
	file := filepath.Join(t.TempDir(), "pid")
	p.started++
	if err := writeProcess(file, p); err != nil {
		t.Fatal(err)
	}
	if _, running := runningFrom(file); running {
		t.Error("a process with another start time counts as ours")
	}
	p.started--
	if err := writeProcess(file, p); err != nil {
		t.Fatal(err)
	}
	if have, running := runningFrom(file); !running || have != p {
		t.Errorf("have %+v %t, want %+v", have, running, p)
	}
	if err := killAndWait([]process{p}); err != nil || p.isAlive() {
		t.Errorf("not killed: %v", err)
	}
}

// sleeper starts a process with one environment variable. It is not collected before the test ends: a dead process
// that is still in the table must count as dead.
func sleeper(t *testing.T, environment string) process {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "100")
	cmd.Env = []string{environment}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Kill)
		_ = cmd.Wait()
	})
	p, err := identifyProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
