package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs/unixctl"
)

// answeredFor is how long OVS' userspace datapath keeps an answered UDP connection after its last packet, in seconds.
// One that nobody has answered it keeps twice as long (lib/conntrack-tp.c, OVS 3.5), and says nothing else of that.
const answeredFor = 30

// FlushUnanswered is part of Pairs: one dump a datapath, for all pairs.
func (s Switch) FlushUnanswered(ctx context.Context, zone int, pairs ...plan.Datagram) error {
	is := map[plan.Datagram]bool{}
	for _, d := range pairs {
		is[d] = true
	}
	return s.each(ctx, func(c *unixctl.Conn, datapath string) error {
		out, err := c.Call(ctx, "dpctl/dump-conntrack", "-m", "-s", datapath, fmt.Sprintf("zone=%d", zone))
		if err != nil {
			return fmt.Errorf("read conntrack zone %d of %s: %w", zone, datapath, err)
		}
		var args [][]string
		var errs []error
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "udp,") || !unanswered(line) {
				continue
			}
			e, err := parseEntry(line)
			if errs = append(errs, err); err == nil && is[e.balanced()] {
				args = append(args, []string{datapath, fmt.Sprintf("zone=%d", e.Zone), e.flushTuple()})
			}
		}
		return errors.Join(append(errs, c.CallEach(ctx, "dpctl/flush-conntrack", args, unlessEnded))...)
	})
}

// balanced is the translation of an entry that one of OVN's load balancers made.
func (e Entry) balanced() plan.Datagram {
	return plan.Datagram{From: netip.AddrPortFrom(e.Orig.Dst, e.Orig.DstPort),
		To: netip.AddrPortFrom(e.Reply.Src, e.Reply.SrcPort), OVN: true}
}

// unanswered says whether nothing has come back on a UDP connection. The kernel's datapath says so (SEEN_REPLY); the
// userspace one has no status, and a longer time for it.
func unanswered(line string) bool {
	status, timeout := "0", 0
	for _, field := range splitFields(strings.TrimSpace(line)) {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "status":
			status = value
		case "timeout":
			timeout, _ = strconv.Atoi(value) // of what is no number nothing is known
		}
	}
	if status != "0" {
		return !strings.Contains(status, "SEEN_REPLY")
	}
	return timeout > answeredFor
}
