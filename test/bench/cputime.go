package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// partOf is which part of a cluster a program belongs to, by what proc_pid_comm(5) has of its name.
func partOf(comm string) string {
	switch comm {
	case "egret-controlpl":
		return "api-server"
	case "egret-controlle":
		return "controllers"
	case "egret-node":
		return "agents"
	case "ovn-northd", "ovn-controller", "ovsdb-server":
		return "ovn"
	case "ovs-vswitchd":
		return "ovs"
	}
	return "other"
}

// cpuTimes are the processor time that the machine's processes have used, by part. What has ended is not counted.
type cpuTimes map[string]time.Duration

func readCPUTimes() (cpuTimes, error) {
	tasks, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	if err != nil {
		return nil, err
	}
	of, times := map[string]string{}, cpuTimes{}
	for _, task := range tasks {
		process := filepath.Dir(filepath.Dir(task))
		if _, known := of[process]; !known {
			comm, _ := os.ReadFile(filepath.Join(process, "comm")) // it may have ended
			of[process] = partOf(string(comm[:max(len(comm)-1, 0)]))
		}
		text, err := os.ReadFile(filepath.Join(task, "schedstat"))
		if err != nil {
			continue // it has ended
		}
		var used int64 // nanoseconds, the first field: Documentation/scheduler/sched-stats.rst
		if _, err := fmt.Sscan(string(text), &used); err != nil {
			return nil, fmt.Errorf("%s/schedstat: %w", task, err)
		}
		times[of[process]] += time.Duration(used)
	}
	return times, nil
}

// cpuUse is what parts of a cluster use of the processors beyond what they use at rest, in runs that begin and end.
type cpuUse struct {
	rest   map[string]float64 // of one second, in seconds
	before cpuTimes
	begun  time.Time
	extra  map[string]*sample // ms
	busy   sample             // processors, rest included
}

// parts are in the order in which they are printed.
func parts() []string { return []string{"api-server", "controllers", "agents", "ovn", "ovs"} }

// atRest looks for two seconds at what is used while nothing happens.
func atRest() (*cpuUse, error) {
	u := &cpuUse{rest: map[string]float64{}, extra: map[string]*sample{}}
	for _, part := range parts() {
		u.extra[part] = &sample{}
	}
	if err := u.begin(); err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second)
	now, err := readCPUTimes()
	wall := time.Since(u.begun).Seconds()
	for part := range now {
		u.rest[part] = (now[part] - u.before[part]).Seconds() / wall
	}
	return u, err
}

func (u *cpuUse) begin() (err error) {
	u.before, err = readCPUTimes()
	u.begun = time.Now()
	return err
}

// end takes in the time that reading takes, which is some milliseconds.
func (u *cpuUse) end() error {
	now, err := readCPUTimes()
	if err != nil {
		return err
	}
	wall := time.Since(u.begun).Seconds()
	sum := 0.0
	for part := range now {
		used := (now[part] - u.before[part]).Seconds()
		sum += used
		if s := u.extra[part]; s != nil {
			s.add(1000 * (used - u.rest[part]*wall))
		}
	}
	u.busy.add(sum / wall)
	return nil
}

// report prints a line a part, and how many of the processors were busy.
func (u *cpuUse) report(l *lab, name string) {
	for _, part := range parts() {
		l.report(result{name: name + "/cpu/" + part, unit: "ms", runs: *u.extra[part]})
	}
	l.report(result{name: name + "/cpu/busy", unit: "cores", runs: u.busy, base: float64(runtime.NumCPU())})
}
