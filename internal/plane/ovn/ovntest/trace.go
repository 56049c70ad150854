package ovntest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Trace runs ovn-trace(8) on a microflow that enters datapath, a logical switch or router by name, as the Southbound is
// now: call Sync first. Options such as --minimal and --ct=est go before the microflow. A daemon starts with the first
// trace after a Sync; a trace then takes some milliseconds.
func (e *Env) Trace(ctx context.Context, datapath, microflow string, options ...string) (string, error) {
	if err := e.startTracer(ctx); err != nil {
		return "", err
	}
	args := append([]string{"-t", e.pathOf("trace.ctl"), "trace"}, options...)
	return e.runProgram(ctx, "usr/bin/ovs-appctl", append(args, datapath, microflow)...)
}

func (e *Env) startTracer(ctx context.Context) error {
	if e.tracer != 0 {
		return nil
	}
	pidfile := e.pathOf("trace.pid")
	_, err := e.runProgram(ctx, "usr/bin/ovn-trace", "--db="+e.SB, "--detach", "--no-chdir", "--pidfile="+pidfile,
		"--unixctl="+e.pathOf("trace.ctl"), "-vconsole:off", "-vfile:off", "-vsyslog:off")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(pidfile)
	if err != nil {
		return fmt.Errorf("ovn-trace left no pid: %w", err)
	}
	if e.tracer, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		return fmt.Errorf("ovn-trace's pid: %w", err)
	}
	return nil
}

// stopTracer ends the daemon: ovn-trace 25.03 reads the Southbound once, when it starts.
func (e *Env) stopTracer() {
	if e.tracer == 0 {
		return
	}
	_ = syscall.Kill(e.tracer, syscall.SIGKILL)
	_ = os.Remove(e.pathOf("trace.pid"))
	_ = os.Remove(e.pathOf("trace.ctl"))
	e.tracer = 0
}

// TraceOnce is Trace by an ovn-trace of its own, which takes every option, such as --ct=new and --select-id=1: the
// daemon of OVN 25.03 knows --minimal and its like alone. Whatever ovn-trace warns of, a logical flow that it cannot
// parse above all, is an error.
func (e *Env) TraceOnce(ctx context.Context, datapath, microflow string, options ...string) (string, error) {
	args := append([]string{"--db=" + e.SB, "-vconsole:warn", "-vfile:off", "-vsyslog:off", quiet}, options...)
	c := rootCommand(e.root, "usr/bin/ovn-trace", append(args, datapath, microflow)...)
	var out, warnings bytes.Buffer
	c.Stdout, c.Stderr = &out, &warnings
	if err := c.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	err := c.Wait()
	if warnings.Len() > 0 {
		err = errors.Join(err, errors.New(warnings.String()))
	}
	if err != nil {
		return "", fmt.Errorf("ovn-trace %s: %w", microflow, err)
	}
	return out.String(), nil
}
