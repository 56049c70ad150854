package flow

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/egret-net/egret/internal/plan"
)

var (
	packets = regexp.MustCompile(`\bn_packets=(\d+)`)
	prio    = regexp.MustCompile(`\bpriority=(\d+)`)
)

// Packets is how many packets have met our flow f since it was first installed; f's match may name ports in braces. A
// flow that is not there has met none. Counters start again with ovs-vswitchd. OpenFlow has no strict question: flows
// of ours of the same table and priority with a narrower match count as well.
func (p *Plane) Packets(ctx context.Context, f plan.Flow) (uint64, error) {
	match, ok := resolveNow(f.Bridge, f.Match, p.ports)
	if !ok {
		return 0, nil
	}
	flows, err := p.switches.dumpFlows(ctx, f.Bridge, fmt.Sprintf("%#x/0xffffffff,table=%d,%s", Mark, f.Table, match))
	if err != nil {
		return 0, fmt.Errorf("read the counter of flow %s: %w", f, err)
	}
	var sum uint64
	for _, l := range flows {
		if m := packets.FindStringSubmatch(l); m != nil && parsePriority(l) == f.Priority {
			n, _ := strconv.ParseUint(m[1], 10, 64)
			sum += n
		}
	}
	return sum, nil
}

// parsePriority of a dumped flow, which leaves OpenFlow's default of 32768 out.
func parsePriority(flow string) int {
	if m := prio.FindStringSubmatch(flow); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 32768
}
