package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// commandTimeout bounds one command from its input on; 20,000 flows take 0.2 s.
const commandTimeout = 10 * time.Second

// command is an ovs-ofctl that was started and waits for its input.
type command struct {
	cmd       *exec.Cmd
	kill      context.CancelFunc
	input     io.WriteCloser
	out, errs strings.Builder // to be read once done is closed
	done      chan struct{}
	err       error
}

// startCommand begins a command, which ends with ctx. Whether it waits for its input is up to what it is told to do.
func (o ofctl) startCommand(ctx context.Context, args ...string) (*command, error) {
	ctx, kill := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, o.path, append([]string{byNumber}, args...)...)
	cmd.WaitDelay = time.Second
	c := &command{cmd: cmd, kill: kill, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &c.out, &c.errs
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		kill()
		return nil, fmt.Errorf("run %s, is openvswitch-switch installed? %w", o.path, err)
	}
	c.input = input
	go func() {
		defer close(c.done)
		defer kill()
		c.err = cmd.Wait()
	}()
	return c, nil
}

// errEnded says that somebody else ended a command.
var errEnded = errors.New("it was ended")

func (c *command) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// finishWith gives a command its input, and waits for its end. Its complaint is a *commandError.
func (c *command) finishWith(ctx context.Context, input string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, c.kill)()
	_, _ = io.WriteString(c.input, input) // a reader that does not read it has ended, or is ended by ctx
	_ = c.input.Close()
	<-c.done
	if exit := (*exec.ExitError)(nil); errors.As(c.err, &exit) && exit.Exited() {
		return c.out.String(), &commandError{strings.TrimSpace(strings.TrimPrefix(c.errs.String(), "ovs-ofctl: "))}
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("run %s, does ovs-vswitchd answer? %w", c.cmd.Path, context.Cause(ctx))
	}
	if c.err != nil {
		return "", fmt.Errorf("run %s: %w: %w", c.cmd.Path, errEnded, c.err)
	}
	return c.out.String(), nil
}
