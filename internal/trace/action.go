package trace

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// action is one action of a flow (ovs-actions(7)). It changes the packet, which the actions after it see, and returns
// the ends of what it sends somewhere. With over it has done what comes after it, too.
type action func(w *walker, rest []action, f flow) (ends []End, over bool)

// splitActions splits an action list at the commas outside of parentheses.
func splitActions(list string) []string {
	var out []string
	depth, start := 0, 0
	for i, c := range list + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out, start = append(out, list[start:i]), i+1
		}
	}
	return out
}

func parseAction(text string) (action, error) {
	name, rest, _ := strings.Cut(text, "(")
	args := strings.TrimSuffix(rest, ")")
	switch {
	case text == "drop", text == "dec_ttl": // a walk is shorter than the time to live
		return dropRest, nil
	case text == "LOCAL":
		return sendTo(func(w walker) []End { return w.toLocal() }), nil
	case text == "in_port":
		return sendTo(func(w walker) []End { return w.outputPort(w.port) }), nil
	case name == "resubmit":
		return parseResubmit(args)
	case name == "multipath":
		return parseMultipath(args)
	case name == "ct":
		return parseCT(splitActions(args))
	case name == "learn" && strings.HasPrefix(args, "table="): // the flow that it makes is not for this packet
		return dropRest, nil
	case name == "check_pkt_larger" && strings.HasSuffix(rest, ")->reg0[0]"): // walked packets fit everywhere
		return func(w *walker, _ []action, _ flow) ([]End, bool) { w.reg0 &^= 1; return nil, false }, nil
	}
	return parseSetting(text)
}

func dropRest(*walker, []action, flow) ([]End, bool) { return nil, false }

func sendTo(to func(walker) []End) action {
	return func(w *walker, _ []action, _ flow) ([]End, bool) { return to(*w), false }
}

// parseSetting reads ACTION:VALUE.
func parseSetting(text string) (action, error) {
	name, value, _ := strings.Cut(text, ":")
	switch {
	case name == "output" && strings.HasPrefix(value, "{"):
		return sendTo(func(w walker) []End { return w.outputPort(value) }), nil
	case name == "move" && strings.Contains(value, "->NXM_NX_XXREG3["): // which nothing matches
		return dropRest, nil
	case name == "set_field" && strings.HasSuffix(value, "->eth_src"):
		mac := strings.TrimSuffix(value, "->eth_src")
		return func(w *walker, _ []action, _ flow) ([]End, bool) { w.frame.src = mac; return nil, false }, nil
	case name == "set_field" && strings.HasSuffix(value, "->eth_dst"):
		mac := strings.TrimSuffix(value, "->eth_dst")
		return func(w *walker, _ []action, _ flow) ([]End, bool) { w.frame.dst = mac; return nil, false }, nil
	}
	return nil, errUnknown
}

// parseResubmit reads "(,TABLE)".
func parseResubmit(args string) (action, error) {
	port, table, _ := strings.Cut(args, ",")
	n, err := strconv.Atoi(table)
	if port != "" {
		err = errUnknown
	}
	return sendTo(func(w walker) []End { return w.walkTable(n) }), err
}

// parseMultipath reads "FIELDS,BASIS,modulo_n,N,ARG,NXM_NX_REG0[0..15]": the walk goes on with every number that may be
// drawn.
func parseMultipath(args string) (action, error) {
	a := strings.Split(args, ",")
	if len(a) != 6 || a[0] != "nw_src" && a[0] != "symmetric_l3l4+udp" || a[2] != "modulo_n" ||
		a[5] != "NXM_NX_REG0[0..15]" {
		return nil, errUnknown
	}
	n, err := strconv.Atoi(a[3])
	return func(w *walker, rest []action, f flow) (ends []End, over bool) {
		for w.reg0 = 0; w.reg0 < n; w.reg0++ {
			ends = append(ends, w.carryOut(rest, f)...)
		}
		return ends, true
	}, err
}

// conntrack is what an action ct says.
type conntrack struct {
	src   netip.Addr // to which a new connection's source is translated; zero: to none
	table int        // where a copy of the packet goes on, with what conntrack knows of it; -1 is nowhere
}

func parseCT(args []string) (action, error) {
	c := conntrack{table: -1}
	for _, arg := range args {
		if err := c.readArgument(arg); err != nil {
			return nil, fmt.Errorf("%q: %w", arg, err)
		}
	}
	return func(w *walker, _ []action, _ flow) ([]End, bool) {
		if c.src.IsValid() && !w.p.Reply {
			w.p.Src = c.src
		}
		if c.table < 0 {
			return nil, false
		}
		next := *w
		if next.tracked = true; len(next.walkTable(c.table)) == 0 {
			return next.endWith(Dropped, untaken), false
		}
		return next.walkTable(c.table), false
	}, nil
}

// readArgument reads one argument. The mark that a connection is given is for its later packets, which are not walked.
func (c *conntrack) readArgument(arg string) (err error) {
	name, value, _ := strings.Cut(arg, "=")
	source, translates := strings.CutPrefix(arg, "nat(src=")
	switch {
	case arg == "commit", arg == "nat", arg == "zone="+plan.Itoa(plan.ZoneGateway):
	case translates:
		addr, _ := strings.CutSuffix(strings.TrimSuffix(source, ")"), ":"+plan.PodPorts)
		c.src, err = netip.ParseAddr(strings.Trim(addr, "[]"))
	case name == "table":
		c.table, err = strconv.Atoi(value)
	case strings.HasPrefix(arg, "exec(set_field:") && strings.HasSuffix(arg, "->ct_mark)"),
		strings.HasPrefix(arg, "exec(load:") && strings.HasSuffix(arg, "->NXM_NX_CT_MARK[0])"):
	default:
		err = errUnknown
	}
	return err
}
