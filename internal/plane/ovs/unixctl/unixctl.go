// Package unixctl talks to the control socket of an OVS daemon, as ovs-appctl does, without a process per command.
//
// In: the daemon's run directory and a command with its arguments. Out: the command's text. The protocol is JSON-RPC
// 1.0 on a unix socket whose name holds the daemon's pid (ovs-appctl(8), lib/unixctl.c). A Conn doubles as a sign of
// life: it ends the moment the daemon does.
package unixctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Conn is one connection to a daemon. Of several goroutines one calls at a time.
type Conn struct {
	mu   sync.Mutex
	conn net.Conn
	dec  *json.Decoder
	id   int
}

// Dial connects to the daemon (`ovs-vswitchd`) whose pid file is in runDir. A daemon that is not there is an error that
// wraps fs.ErrNotExist or syscall.ECONNREFUSED.
func Dial(ctx context.Context, runDir, daemon string) (*Conn, error) {
	pid, err := os.ReadFile(filepath.Join(runDir, daemon+".pid"))
	if err != nil {
		return nil, fmt.Errorf("find %s, is it running? %w", daemon, err)
	}
	path := filepath.Join(runDir, fmt.Sprintf("%s.%s.ctl", daemon, strings.TrimSpace(string(pid))))
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to %s, is it running? %w", daemon, err)
	}
	return &Conn{conn: conn, dec: json.NewDecoder(conn)}, nil
}

// Close ends the connection and every call on it.
func (c *Conn) Close() error { return c.conn.Close() }

// CommandError is the daemon's own answer that a command failed; the connection is still good.
type CommandError struct{ Command, Text string }

func (e *CommandError) Error() string { return e.Command + ": " + e.Text }

type request struct {
	Method string   `json:"method"`
	Params []string `json:"params"`
	ID     int      `json:"id"`
}

type reply struct {
	Result string  `json:"result"`
	Error  *string `json:"error"`
	ID     int     `json:"id"`
}

// Call runs a command and returns its text. A command that the daemon refuses is a *CommandError; after any other error
// the connection is of no more use.
func (c *Conn) Call(ctx context.Context, command string, args ...string) (string, error) {
	var text string
	err := c.callEach(ctx, command, [][]string{args}, func(result string, refused error) error {
		text = result
		return refused
	})
	return text, err
}

// Ask runs a command and waits for its answer as long as ctx lasts, where Call gives up earlier.
func (c *Conn) Ask(ctx context.Context, command string) error {
	return c.exchangeLines(ctx, command, [][]string{nil}, func(_ string, refused error) error { return refused })
}

// callTimeout bounds the answer to one window of commands; a dump of a million connections takes seconds.
const callTimeout = 10 * time.Second

// window is how many commands are on their way at one time. The daemon takes up to ten of a connection before it looks
// at anything else (lib/unixctl.c of OVS 3.5), and nothing else meanwhile is one command a turn of its main loop.
const window = 32

// CallEach runs a command once for each list of arguments. Commands that the daemon refuses are shown to refused; its
// error, if any, is returned in the end, when all have been answered.
func (c *Conn) CallEach(ctx context.Context, command string, args [][]string, refused func(*CommandError) error) error {
	var errs []error
	for some := range slices.Chunk(args, window) {
		err := c.callEach(ctx, command, some, func(_ string, err error) error {
			if e := (*CommandError)(nil); errors.As(err, &e) {
				errs = append(errs, refused(e))
			}
			return nil
		})
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	return errors.Join(errs...)
}

func (c *Conn) callEach(ctx context.Context, command string, args [][]string,
	answered func(result string, refused error) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.exchangeLines(ctx, command, args, answered)
}

// exchangeLines sends one request a list of arguments, and then takes the answers, which come in the same order.
func (c *Conn) exchangeLines(ctx context.Context, command string, args [][]string,
	answered func(result string, refused error) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.sendRequests(command, args); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("send %s: %w", command, err))
	}
	var errs []error
	for range args {
		var r reply
		if err := c.dec.Decode(&r); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("read the answer to %s: %w", command, err))
		}
		var refused error
		if r.Error != nil {
			r.Result, refused = "", &CommandError{command, strings.TrimSpace(*r.Error)}
		}
		errs = append(errs, answered(r.Result, refused))
	}
	return errors.Join(errs...)
}

func (c *Conn) sendRequests(command string, args [][]string) error {
	var all []byte
	for _, list := range args {
		c.id++
		b, err := json.Marshal(request{command, append([]string{}, list...), c.id})
		if err != nil {
			return err
		}
		all = append(all, b...)
	}
	_, err := c.conn.Write(all)
	return err
}

// WaitClosed blocks until the daemon is gone or ctx is done; no Call may follow.
func (c *Conn) WaitClosed(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var one [1]byte
	for {
		if _, err := c.conn.Read(one[:]); err != nil {
			return ctx.Err()
		}
	}
}
