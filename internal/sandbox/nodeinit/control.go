package nodeinit

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
	"syscall"
	"time"
)

// ControlSocket is the control socket's path inside the node.
const ControlSocket = "/run/egret/init.sock"

// Request asks a node's first process for something. Op is list, kill, stop or start.
type Request struct {
	Op     string         `json:"op"`
	Unit   string         `json:"unit,omitempty"` // all but list
	Signal syscall.Signal `json:"signal,omitempty"`
}

// Reply is the answer: the units as they are after the request, or what went wrong.
type Reply struct {
	Units []Status `json:"units,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Ask sends one Request to the control socket of the node whose first process is pid on this machine. The socket is
// reached through /proc, so that the caller need not enter the node.
func Ask(ctx context.Context, pid int, req Request) ([]Status, error) {
	socket := filepath.Join(fmt.Sprintf("/proc/%d/root", pid), ControlSocket)
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("ask the node's first process: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return nil, fmt.Errorf("ask the node's first process: %w", err)
	}
	var reply Reply
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return nil, fmt.Errorf("answer of the node's first process: %w", err)
	}
	if reply.Error != "" {
		return nil, errors.New(reply.Error)
	}
	return reply.Units, nil
}

// control answers requests about a node's units.
type control struct{ units []*supervised }

func (c control) listenOnSocket() error {
	if err := os.MkdirAll(filepath.Dir(ControlSocket), 0o755); err != nil {
		return err
	}
	l, err := net.Listen("unix", ControlSocket)
	if err != nil {
		return err
	}
	go c.serveRequests(l)
	return nil
}

func (c control) serveRequests(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			time.Sleep(needsPoll) // out of file descriptors; the listener itself is never closed
			continue
		}
		go c.answerRequest(conn)
	}
}

func (c control) answerRequest(conn net.Conn) {
	defer conn.Close()
	var req Request
	if err := json.NewDecoder(conn).Decode(&req); err != nil {
		return // the asker is gone
	}
	var reply Reply
	if err := c.carryOut(req); err != nil {
		reply.Error = err.Error()
	} else {
		for _, u := range c.units {
			reply.Units = append(reply.Units, u.currentStatus())
		}
	}
	_ = json.NewEncoder(conn).Encode(reply) // fails only if the asker is gone
}

func (c control) carryOut(req Request) error {
	if req.Op == "list" {
		return nil
	}
	i := slices.IndexFunc(c.units, func(u *supervised) bool { return u.unit.Name == req.Unit })
	if i < 0 {
		return fmt.Errorf("no process %q: there are %s", req.Unit, c.unitNames())
	}
	switch u := c.units[i]; req.Op {
	case "kill":
		return u.killProcess(req.Signal)
	case "stop":
		u.stopKeeping()
	case "start":
		u.startKeeping()
	default:
		return fmt.Errorf("no operation %q: there are list, kill, stop, start", req.Op)
	}
	return nil
}

func (c control) unitNames() string {
	var names []string
	for _, u := range c.units {
		names = append(names, u.unit.Name)
	}
	return strings.Join(names, ", ")
}
