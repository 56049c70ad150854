package harness

import (
	"fmt"
	"io"
	"os/exec"
)

// underStdin runs a command until its standard input ends: a process that nsenter started in another pid namespace does
// not die with it.
const underStdin = `"$@" & pid=$!; read -r _; kill "$pid"; wait "$pid"`

// Job is a process that runs in a node beside the measurement.
type Job struct {
	stdin  io.Closer
	Stdout io.ReadCloser
	cmd    *exec.Cmd
}

// Start runs a command inside a node until Stop.
func (c *Cluster) Start(node string, command ...string) (*Job, error) {
	args, err := c.Command(node, append([]string{"sh", "-c", underStdin, "sh"}, command...)...)
	if err != nil {
		return nil, err
	}
	j := &Job{cmd: exec.Command(args[0], args[1:]...)}
	if j.stdin, err = j.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if j.Stdout, err = j.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := j.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %v on %s: %w", command, node, err)
	}
	return j, nil
}

// Stop ends the process.
func (j *Job) Stop() {
	_ = j.stdin.Close()
	_, _ = io.Copy(io.Discard, j.Stdout)
	_ = j.cmd.Wait() // its status is that of a process that was killed
}
