package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// marker is the environment variable that all processes of a sandbox inherit; its value is the state folder. It is how
// they are found again, whoever was killed before it could write a pid down.
const marker = "EGRET_SANDBOX"

func markerOf(l layout) string { return marker + "=" + l.stateDir() }

// process is one that was started: pid and start time, in clock ticks since boot, identify it for good.
type process struct {
	pid     int
	started uint64
}

// identifyProcess reads the start time of a process that runs now.
func identifyProcess(pid int) (process, error) {
	fields, err := statFields(pid)
	if err != nil {
		return process{}, err
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("start time of process %d: %w", pid, err)
	}
	return process{pid, started}, nil
}

// statFields returns /proc/PID/stat from field 3, the state, on: the name before it may hold anything.
func statFields(pid int) ([]string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	return fields, nil
}

// isAlive says whether the process still runs; one that has ended but was not collected does not.
func (p process) isAlive() bool {
	fields, err := statFields(p.pid)
	return err == nil && fields[19] == strconv.FormatUint(p.started, 10) && fields[0] != "Z" && fields[0] != "X"
}

// readProcess reads what writeProcess wrote.
func readProcess(file string) (process, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return process{}, err
	}
	var p process
	if _, err := fmt.Sscanf(string(content), "%d %d", &p.pid, &p.started); err != nil {
		return process{}, fmt.Errorf("%s: want pid and start time: %w", file, err)
	}
	return p, nil
}

func writeProcess(file string, p process) error {
	return os.WriteFile(file, fmt.Appendf(nil, "%d %d\n", p.pid, p.started), 0o644)
}

// runningFrom returns the process of a pid file if it is alive.
func runningFrom(file string) (process, bool) {
	p, err := readProcess(file)
	return p, err == nil && p.isAlive()
}

// killAndWait ends processes at once and returns when they are gone.
func killAndWait(pids []process) error {
	for _, p := range pids {
		if p.isAlive() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // gone in between is as good
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, p := range pids {
		for p.isAlive() {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d does not end: look at /proc/%d/stack", p.pid, p.pid)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// sandboxProcesses finds the processes of a sandbox: those that carry its marker, and those that somebody started
// inside one of its network namespaces. The caller and its ancestors are never among them.
func sandboxProcesses(l layout, netnsNames []string) ([]process, error) {
	namespaces := map[uint64]bool{}
	for _, name := range netnsNames {
		if id := netnsID(name); id != 0 {
			namespaces[id] = true
		}
	}
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	self := ancestorPIDs()
	var found []process
	for _, dir := range entries {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || slices.Contains(self, pid) {
			continue
		}
		if !namespaces[inodeOf(dir+"/ns/net")] && !hasMarker(dir, l) {
			continue
		}
		if p, err := identifyProcess(pid); err == nil {
			found = append(found, p)
		}
	}
	return found, nil
}

func hasMarker(procDir string, l layout) bool {
	environment, err := os.ReadFile(procDir + "/environ")
	return err == nil && slices.Contains(strings.Split(string(environment), "\x00"), markerOf(l))
}

// ancestorPIDs lists this process and its parents.
func ancestorPIDs() []int {
	pids := []int{os.Getpid()}
	for {
		fields, err := statFields(pids[len(pids)-1])
		if err != nil {
			return pids
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil || parent == 0 {
			return pids
		}
		pids = append(pids, parent)
	}
}

// endAll ends all processes of a sandbox, those too that others of them start meanwhile.
func endAll(l layout, netnsNames []string) error {
	for range 20 {
		found, err := sandboxProcesses(l, netnsNames)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return nil
		}
		if err := killAndWait(found); err != nil {
			return err
		}
	}
	return errors.New("processes of the sandbox keep appearing: end what starts commands in its namespaces")
}
