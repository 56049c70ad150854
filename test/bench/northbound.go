package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/cenkalti/rpc2"
	"github.com/cenkalti/rpc2/jsonrpc"
)

const (
	northboundSocket = "/run/ovn/ovnnb_db.sock"
	northboundName   = "OVN_Northbound"
)

// northbound is a connection to a node's Northbound (RFC 7047). Values stay as they come: they are only written back.
type northbound struct{ rpc *rpc2.Client }

// row is one row's columns, or an operation's members.
type row map[string]any

func dialNorthbound(ctx context.Context) (*northbound, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", northboundSocket)
	if err != nil {
		return nil, err
	}
	n := &northbound{rpc2.NewClientWithCodec(jsonrpc.NewJSONCodec(c))}
	n.rpc.Handle("echo", func(_ *rpc2.Client, args []any, reply *[]any) error {
		*reply = args
		return nil
	})
	go n.rpc.Run()
	return n, nil
}

// transact runs operations as one transaction, and returns the rows of each that selects.
func (n *northbound) transact(ctx context.Context, operations ...row) ([][]row, error) {
	args := []any{northboundName}
	for _, o := range operations {
		args = append(args, o)
	}
	var results []*struct {
		Error, Details string
		Rows           []row
	}
	if err := n.rpc.CallWithContext(ctx, "transact", args, &results); err != nil {
		return nil, err
	}
	var rows [][]row
	for _, r := range results {
		if r != nil && r.Error != "" {
			return nil, fmt.Errorf("%s: %s", r.Error, r.Details)
		}
		if r != nil {
			rows = append(rows, r.Rows)
		}
	}
	return rows, nil
}

// all selects all rows of a table; no columns are all columns.
func all(table string, columns ...string) row {
	o := row{"op": "select", "table": table, "where": []any{}}
	if len(columns) > 0 {
		o["columns"] = columns
	}
	return o
}

// bump asks northd and the hypervisor to confirm the transaction that it is in.
func bump() row {
	return row{"op": "mutate", "table": "NB_Global", "where": []any{}, "mutations": []any{[]any{"nb_cfg", "+=", 1}}}
}

// confirmed waits until the hypervisor has what is written now.
func (n *northbound) confirmed(ctx context.Context) error {
	var want float64
	return until(ctx, 2*time.Minute, 2*time.Millisecond, func() error {
		rows, err := n.transact(ctx, all("NB_Global", "nb_cfg", "hv_cfg"))
		if err != nil {
			return err
		}
		global := rows[0][0]
		if want == 0 {
			want = global["nb_cfg"].(float64)
		}
		if global["hv_cfg"].(float64) < want {
			return fmt.Errorf("the hypervisor has confirmed %v of %v", global["hv_cfg"], want)
		}
		return nil
	})
}

// watchBalancers says, by a channel, how many load balancers there are whenever that changes.
func (n *northbound) watchBalancers(ctx context.Context) (<-chan int, error) {
	type updates map[string]map[string]struct{ Old, New json.RawMessage }
	count, counts := 0, make(chan int, 1024)
	see := func(u updates) {
		for _, r := range u["Load_Balancer"] {
			switch {
			case r.Old == nil:
				count++
			case r.New == nil:
				count--
			}
		}
		counts <- count
	}
	ready := make(chan struct{})
	n.rpc.SetBlocking(true)
	n.rpc.Handle("update", func(_ *rpc2.Client, args []json.RawMessage, _ *[]any) error {
		<-ready
		var u updates
		if err := json.Unmarshal(args[1], &u); err != nil {
			return err
		}
		see(u)
		return nil
	})
	var first updates
	monitor := row{"Load_Balancer": row{"columns": []string{"name"}}}
	if err := n.rpc.CallWithContext(ctx, "monitor", []any{northboundName, "bench", monitor}, &first); err != nil {
		return nil, err
	}
	see(first)
	close(ready)
	return counts, nil
}
