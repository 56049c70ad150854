package ovn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/rpc2"
	"github.com/cenkalti/rpc2/jsonrpc"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// conn is one connection to ovsdb-server, which speaks JSON-RPC 1.0 (RFC 7047 4). libovsdb's own client wants a Go type
// per table and copies a whole row, an address set of thousands too, for each element that changes; here rows are
// generic and set changes stay differences.
type conn struct {
	rpc    *rpc2.Client
	socket net.Conn
	db     string
	schema schema
	// cut is true from when we ended the connection: the reader of the socket learns of it some time later.
	cut atomic.Bool
}

// dialServer connects to endpoint, "unix:PATH" or "tcp:HOST:PORT", and reads db's schema. onUpdate gets every
// notification, in order, and always before the reply to the transaction that caused it (ovsdb-server flushes monitors
// before it replies).
func dialServer(ctx context.Context, endpoint, db string, onUpdate func(tableUpdates)) (*conn, error) {
	network, address, ok := strings.Cut(endpoint, ":")
	if !ok {
		return nil, fmt.Errorf("endpoint %q: write unix:PATH", endpoint)
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("cannot reach %s (is its ovsdb-server running?): %w", db, err)
	}
	c := &conn{rpc: rpc2.NewClientWithCodec(jsonrpc.NewJSONCodec(nc)), socket: nc, db: db}
	c.rpc.SetBlocking(true) // keeps notifications in order
	c.rpc.Handle("echo", func(_ *rpc2.Client, args []any, reply *[]any) error {
		*reply = args
		return nil
	})
	c.rpc.Handle("update2", func(_ *rpc2.Client, args []json.RawMessage, _ *[]any) error {
		err := c.handleUpdate(args, onUpdate)
		if err != nil {
			c.closeConn() // without this change the local copy would be wrong for good
		}
		return err
	})
	go c.rpc.Run()
	var s ovsdb.DatabaseSchema
	if err := c.callMethod(ctx, "get_schema", []any{db}, &s); err != nil {
		c.closeConn()
		return nil, fmt.Errorf("read schema of %s: %w", db, err)
	}
	c.schema = newSchema(s)
	return c, nil
}

func (c *conn) handleUpdate(args []json.RawMessage, onUpdate func(tableUpdates)) error {
	var u tableUpdates
	if len(args) != 2 {
		return fmt.Errorf("update2 with %d arguments", len(args))
	}
	if err := json.Unmarshal(args[1], &u); err != nil {
		return err
	}
	onUpdate(u)
	return nil
}

// callTimeout bounds one call; ovsdb-server takes 1.5 s for a transaction of 10,000 rows.
const callTimeout = 20 * time.Second

// callMethod ends the connection when its time is over. The call's effect is not known then, and a server that stands
// still does not read, so that even sending may wait.
func (c *conn) callMethod(ctx context.Context, method string, args, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.socket.Close() })
	err := c.rpc.CallWithContext(ctx, method, args, reply)
	if !stop() {
		c.cut.Store(true)
	}
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}

// monitorTables asks for a copy of the tables, and for every change to them from then on.
func (c *conn) monitorTables(ctx context.Context, tables map[string]ovsdb.MonitorRequest) (tableUpdates, error) {
	requests := map[string][]ovsdb.MonitorRequest{}
	for name, r := range tables {
		requests[name] = []ovsdb.MonitorRequest{r}
	}
	var u tableUpdates
	if err := c.callMethod(ctx, ovsdb.ConditionalMonitorRPC, []any{c.db, "egret", requests}, &u); err != nil {
		return nil, fmt.Errorf("monitor %s: %w", c.db, err)
	}
	return u, nil
}

// result is one operation's result (RFC 7047 5.2); nil for operations after a failed one.
type result struct {
	Error   string           `json:"error"`
	Details string           `json:"details"`
	Rows    []map[string]any `json:"rows"`
}

// txnError is a transaction that the server refused. op is the operation's number, or -1 when the whole failed at
// commit.
type txnError struct {
	op            int
	what, details string
}

func (e *txnError) Error() string { return e.what + ": " + e.details }

// runTransaction runs ops as one transaction. A *txnError is the database's refusal; any other error leaves open
// whether the transaction took place.
func (c *conn) runTransaction(ctx context.Context, ops []ovsdb.Operation) ([]*result, error) {
	var results []*result
	if err := c.callMethod(ctx, "transact", ovsdb.NewTransactArgs(c.db, ops...), &results); err != nil {
		return nil, fmt.Errorf("transaction on %s: %w", c.db, err)
	}
	for i, r := range results {
		if r != nil && r.Error != "" {
			if i >= len(ops) {
				i = -1
			}
			return nil, c.serverFailure(&txnError{i, r.Error, r.Details})
		}
	}
	return results, nil
}

// serverFailure is the server's own trouble where that is what a transaction failed by (RFC 7047 4.1.3): no row is to
// blame.
func (c *conn) serverFailure(e *txnError) error {
	if e.what == "I/O error" || e.what == "resources exhausted" {
		return fmt.Errorf("the server of %s cannot write: %s: see whether the disk of its file has room", c.db,
			e.Error())
	}
	return e
}

// isAlive says whether another call may be answered.
func (c *conn) isAlive() bool {
	select {
	case <-c.whenClosed():
		return false
	default:
		return !c.cut.Load()
	}
}

func (c *conn) whenClosed() <-chan struct{} { return c.rpc.DisconnectNotify() }

func (c *conn) closeConn() {
	c.cut.Store(true)
	_ = c.rpc.Close()
}
