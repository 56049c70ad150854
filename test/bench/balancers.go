package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// balancers is this program's part inside a node, about the load balancers in its Northbound:
//
//	clear          removes them, and waits until the hypervisor has none
//	rewrite        removes them, and writes the same rows again in one transaction; prints the milliseconds until the reply, and until the
//	               hypervisor has them
//	await NUMBER   waits until there are so many, and prints the nanoseconds since 1970 at which they were there, and at which the
//	               hypervisor had them
func balancers(args []string) error {
	ctx := context.Background()
	n, err := dialNorthbound(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "clear":
		return n.clear(ctx)
	case len(args) == 1 && args[0] == "rewrite":
		return n.rewrite(ctx)
	case len(args) == 2 && args[0] == "await":
		number, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return n.await(ctx, number)
	}
	return fmt.Errorf("balancers: want clear, rewrite or await NUMBER, have %q", args)
}

// clear removes all load balancers; references to them are weak.
func (n *northbound) clear(ctx context.Context) error {
	if _, err := n.transact(ctx, row{"op": "delete", "table": "Load_Balancer", "where": []any{}}, bump()); err != nil {
		return err
	}
	return n.confirmed(ctx)
}

func (n *northbound) rewrite(ctx context.Context) error {
	operations, err := n.asInserts(ctx)
	if err != nil {
		return err
	}
	if err := n.clear(ctx); err != nil {
		return err
	}
	start := time.Now()
	if _, err := n.transact(ctx, operations...); err != nil {
		return err
	}
	replied := time.Since(start)
	if err := n.confirmed(ctx); err != nil {
		return err
	}
	_, err = fmt.Println(milliseconds(replied), milliseconds(time.Since(start)))
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// asInserts is the transaction that would write all load balancers and all references to them.
func (n *northbound) asInserts(ctx context.Context) ([]row, error) {
	rows, err := n.transact(ctx, all("Load_Balancer"))
	if err != nil {
		return nil, err
	}
	var operations []row
	names := map[string]string{} // by UUID
	for i, r := range rows[0] {
		uuid := r["_uuid"].([]any)[1].(string)
		names[uuid] = fmt.Sprint("lb", i)
		delete(r, "_uuid")
		delete(r, "_version")
		operations = append(operations, row{"op": "insert", "table": "Load_Balancer", "uuid-name": names[uuid], "row": r})
	}
	for _, table := range []string{"Load_Balancer_Group", "Logical_Switch", "Logical_Router"} {
		referring, err := n.transact(ctx, all(table, "_uuid", "load_balancer"))
		if err != nil {
			return nil, err
		}
		for _, r := range referring[0] {
			if set := named(r["load_balancer"], names); len(set) > 0 {
				operations = append(operations, row{"op": "mutate", "table": table, "where": []any{[]any{"_uuid", "==", r["_uuid"]}},
					"mutations": []any{[]any{"load_balancer", "insert", []any{"set", set}}}})
			}
		}
	}
	return append(operations, bump()), nil
}

// named turns a reference or a set of them into references by name.
func named(value any, names map[string]string) []any {
	var out []any
	pair, _ := value.([]any)
	if len(pair) == 2 && pair[0] == "uuid" {
		return []any{[]any{"named-uuid", names[pair[1].(string)]}}
	}
	if len(pair) == 2 && pair[0] == "set" {
		for _, member := range pair[1].([]any) {
			out = append(out, named(member, names)...)
		}
	}
	return out
}

func (n *northbound) await(ctx context.Context, number int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	counts, err := n.watchBalancers(ctx)
	if err != nil {
		return err
	}
	for count := 0; count < number; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("there are %d load balancers, not %d: %w", count, number, ctx.Err())
		case count = <-counts:
		}
	}
	written := time.Now()
	if _, err := n.transact(ctx, bump()); err != nil {
		return err
	}
	if err := n.confirmed(ctx); err != nil {
		return err
	}
	_, err = fmt.Println(written.UnixNano(), time.Now().UnixNano())
	return err
}
