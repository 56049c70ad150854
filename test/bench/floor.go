package main

import (
	"context"
	"fmt"
	"strings"
)

// syncs times `ovn-nbctl --wait=hv sync` by the shell's clock, so that nothing but the command is in the time.
const syncs = `for i in $(seq "$1"); do a=$EPOCHREALTIME; ovn-nbctl --wait=hv sync || exit 1; b=$EPOCHREALTIME; echo "$a $b"; sleep 0.05; done`

// floor is the least that a change of a node's zone can cost, in milliseconds: a transaction that changes nothing,
// until the hypervisor has it.
func (c *cluster) floor(ctx context.Context, node string, runs int) (float64, error) {
	out, err := c.ExecIn(ctx, node, "bash", "-c", syncs, "bash", fmt.Sprint(runs))
	if err != nil {
		return 0, err
	}
	var s sample
	for line := range strings.Lines(string(out)) {
		var from, to float64
		if _, err := fmt.Sscan(line, &from, &to); err != nil {
			return 0, fmt.Errorf("time of a sync %q: %w", line, err)
		}
		s.add((to - from) * 1000)
	}
	return s.median(), nil
}
