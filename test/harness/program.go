package harness

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Program is one of the product's, run by us in place of the node's own.
type Program struct {
	*Job
	Name string
	Pid  int // inside the node
}

// Rerun stops a node's program and runs it again with other arguments.
func (c *Cluster) Rerun(ctx context.Context, node, name string, change func([]string) ([]string, error)) (*Program,
	error) {
	args, err := c.ArgsOf(ctx, node, name)
	if err != nil {
		return nil, err
	}
	if args, err = change(args); err != nil {
		return nil, err
	}
	if err := c.StopProcess(ctx, node, name); err != nil {
		return nil, err
	}
	return c.RunProgram(node, name, args)
}

// RunProgram runs a program of a node with these arguments, the program itself first.
func (c *Cluster) RunProgram(node, name string, args []string) (*Program, error) {
	j, err := c.Start(node, append([]string{"sh", "-c", `echo $$; log=$1; shift; exec "$@" >"$log" 2>&1`, "sh",
		"/var/log/egret/" + name + "-bench.log"}, args...)...)
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(j.Stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Program{Job: j, Name: name}
	p.Pid, err = strconv.Atoi(strings.TrimSpace(line))
	return p, err
}

// ArgsOf is the command line of a node's program.
func (c *Cluster) ArgsOf(ctx context.Context, node, name string) ([]string, error) {
	pid, err := c.PidOf(ctx, node, name)
	if err != nil {
		return nil, err
	}
	out, err := c.ExecIn(ctx, node, "cat", fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), err
}

// Resident are VmRSS and VmHWM of a process, in MiB.
func (c *Cluster) Resident(ctx context.Context, node string, pid int) (now, peak float64, err error) {
	if err := c.Rest(ctx, node, pid); err != nil {
		return 0, 0, err
	}
	out, err := c.ExecIn(ctx, node, "cat", fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(out)) {
		for key, value := range map[string]*float64{"VmRSS:": &now, "VmHWM:": &peak} {
			if text, ok := strings.CutPrefix(line, key); ok {
				if _, err := fmt.Sscan(text, value); err != nil {
					return 0, 0, fmt.Errorf("%q: %w", line, err)
				}
				*value /= 1024
			}
		}
	}
	return now, peak, nil
}

// cpuTicks is the time that a process has used, in hundredths of a second: fields 14 and 15 of proc_pid_stat(5).
func (c *Cluster) cpuTicks(ctx context.Context, node string, pid int) (int64, error) {
	out, err := c.ExecIn(ctx, node, "cat", fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(out), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("stat of process %d: %q", pid, out)
	}
	var user, system int64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return user + system, err
}

// Rest waits until a program has taken in what was changed: it uses no more than a tenth of a core.
func (c *Cluster) Rest(ctx context.Context, node string, pid int) error {
	last := int64(-1)
	return Until(ctx, 3*time.Minute, 3*time.Second, func() error {
		ticks, err := c.cpuTicks(ctx, node, pid)
		if err != nil {
			return err
		}
		used := ticks - last
		first := last < 0
		last = ticks
		if first || used > 30 { // of 100 a second, in 3 s
			return fmt.Errorf("process %d is busy", pid)
		}
		return nil
	})
}
