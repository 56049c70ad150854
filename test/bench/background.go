package main

import (
	"fmt"
	"io"
	"os/exec"
)

// underStdin runs a command until its standard input ends: a process that nsenter started in another pid namespace does not die with it.
const underStdin = `"$@" & pid=$!; read -r _; kill "$pid"; wait "$pid"`

// job is a process that runs in a node beside the measurement.
type job struct {
	stdin  io.Closer
	stdout io.ReadCloser
	cmd    *exec.Cmd
}

// start runs a command inside a node until stop.
func (c *cluster) start(node string, command ...string) (*job, error) {
	args, err := c.Command(node, append([]string{"sh", "-c", underStdin, "sh"}, command...)...)
	if err != nil {
		return nil, err
	}
	j := &job{cmd: exec.Command(args[0], args[1:]...)}
	if j.stdin, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if j.stdout, err = j.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %v on %s: %w", command, node, err)
	}
	return j, nil
}

func (j *job) stop() {
	_ = j.stdin.Close()
	_, _ = io.Copy(io.Discard, j.stdout)
	_ = j.cmd.Wait() // its status is that of a process that was killed
}
