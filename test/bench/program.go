package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// program is one of the product's, run by us in place of the node's own.
type program struct {
	*job
	name string
	pid  int // inside the node
}

// widen stops a node's program and runs it again with room for more nodes: the sandbox's own subnets have room for 256.
func (c *cluster) widen(ctx context.Context, node, name string) (*program, error) {
	return c.rerun(ctx, node, name, func(args []string) ([]string, error) {
		i := slices.Index(args, "--cluster-subnets")
		if i < 0 {
			return nil, fmt.Errorf("%s has no --cluster-subnets: %q", name, args)
		}
		args[i+1] = widerSubnets
		return args, nil
	})
}

// rerun stops a node's program and runs it again with other arguments.
func (c *cluster) rerun(ctx context.Context, node, name string, change func([]string) ([]string, error)) (*program, error) {
	args, err := c.argsOf(ctx, node, name)
	if err != nil {
		return nil, err
	}
	if args, err = change(args); err != nil {
		return nil, err
	}
	if err := c.StopProcess(ctx, node, name); err != nil {
		return nil, err
	}
	return c.runProgram(node, name, args)
}

// runProgram runs a program of a node with these arguments, the program itself first.
func (c *cluster) runProgram(node, name string, args []string) (*program, error) {
	j, err := c.start(node, append([]string{"sh", "-c", `echo $$; log=$1; shift; exec "$@" >"$log" 2>&1`, "sh", "/var/log/egret/" + name + "-bench.log"}, args...)...)
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(j.stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &program{job: j, name: name}
	p.pid, err = strconv.Atoi(strings.TrimSpace(line))
	return p, err
}

// argsOf is the command line of a node's program.
func (c *cluster) argsOf(ctx context.Context, node, name string) ([]string, error) {
	pid, err := c.PidOf(ctx, node, name)
	if err != nil {
		return nil, err
	}
	out, err := c.ExecIn(ctx, node, "cat", fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), err
}

// resident are VmRSS and VmHWM of a process, in MiB.
func (c *cluster) resident(ctx context.Context, node string, pid int) (now, peak float64, err error) {
	if err := c.rest(ctx, node, pid); err != nil {
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
func (c *cluster) cpuTicks(ctx context.Context, node string, pid int) (int64, error) {
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
