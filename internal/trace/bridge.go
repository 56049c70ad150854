package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// flow is one OpenFlow flow of the gateway bridge.
type flow struct {
	priority       int
	match, actions string
}

func (z *zone) indexHost() {
	for f, actions := range z.state.Flows.Rows() {
		z.flows[f.Table] = append(z.flows[f.Table], flow{f.Priority, f.Match, actions})
		if port := inPort(f.Match); port != "" && port != "LOCAL" && !strings.HasPrefix(port, "{"+plan.Patch) {
			z.uplink, z.bridge = port, f.Bridge
		}
	}
	for _, flows := range z.flows {
		slices.SortFunc(flows, func(a, b flow) int { return either(b.priority-a.priority, strings.Compare(a.match, b.match)) })
	}
	for id, row := range z.state.NB.Rows() {
		if id.Table == "Logical_Router_Policy" && strings.HasPrefix(id.Name, "own-node/") && row.Parent.Name != "" {
			if a, err := netip.ParseAddr(strings.TrimPrefix(id.Name, "own-node/")); err == nil {
				z.local[a] = uplink
			}
		}
	}
	for a := range z.state.Addrs.Rows() {
		z.local[a.Prefix.Addr()] = a.Dev
	}
}

func inPort(match string) string {
	_, rest, _ := strings.Cut(match, "in_port=")
	port, _, _ := strings.Cut(rest, ",")
	return port
}

// enter is a packet that comes to a node over the uplink.
func (w walker) enter() []End {
	w.mark = 0
	return w.bridge(w.zone().uplink)
}

// bridge is the gateway bridge, for packets from OVN, from the host, or from outside.
func (w walker) bridge(inPort string) []End { return w.table(0, inPort) }

func (w walker) table(number int, inPort string) []End {
	if w.hops++; w.hops > maxHops {
		return w.end(Dropped, "a loop")
	}
	for _, f := range w.zone().flows[number] {
		if w.flowMatches(f.match, inPort) {
			in := ""
			if number > 0 {
				in = fmt.Sprintf("table=%d,", number)
			}
			text := fmt.Sprintf("flow %spriority=%d,%s", in, f.priority, f.match)
			return w.step("%s actions=%s", text, f.actions).act(actions(f.actions), inPort, text)
		}
	}
	return w.end(Dropped, "no flow of the gateway bridge takes it")
}

// act carries a flow's actions out, to the first that sends the packet somewhere.
func (w walker) act(todo []string, inPort, flow string) []End {
	for i, a := range todo {
		name, rest, _ := strings.Cut(a, "(")
		args := strings.Split(strings.TrimSuffix(rest, ")"), ",")
		switch {
		case a == "drop":
			return w.end(Dropped, "%s", flow)
		case a == "LOCAL":
			w.iif = w.zone().bridge
			return w.host()
		case a == "output:"+w.names.PatchPort():
			return w.route(w.names.GatewayRouter(w.node), w.names.GatewayToExternal(w.node))
		case strings.HasPrefix(a, "output:"):
			return w.arrive()
		case name == "resubmit":
			return w.table(number(args[1]), inPort)
		case name == "multipath":
			return w.draw(number(args[3]), todo[i+1:], inPort, flow)
		case name == "ct":
			if src, ok := translation(a); ok && !w.p.Reply {
				w.p.Src = src
			}
			if _, table, ok := strings.Cut(strings.TrimSuffix(a, ")"), "table="); ok {
				return w.table(number(table), inPort)
			}
		}
	}
	return w.end(Dropped, "%s sends it nowhere", flow)
}

// draw goes on with every number that may be drawn.
func (w walker) draw(n int, todo []string, inPort, flow string) []End {
	var ends []End
	for w.reg0 = 0; w.reg0 < n; w.reg0++ {
		ends = append(ends, w.act(todo, inPort, flow)...)
	}
	return ends
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

// actions splits an action list at the commas outside of parentheses.
func actions(list string) []string {
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

// arrive is the nodes' network: another node, or beyond.
func (w walker) arrive() []End {
	for name, z := range w.net {
		if dev := z.local[w.p.Dst]; dev == uplink && name != w.node {
			from := w.node
			w.node = name
			w = w.step("from %s over the nodes' network", from)
			if w.p.Reply {
				return w.end(ToHost, "") // whose the connection is, no plan tells
			}
			return w.enter()
		}
	}
	return w.end(Outside, "")
}

// translation reads nat(src=A) out of an action.
func translation(action string) (netip.Addr, bool) {
	_, rest, ok := strings.Cut(action, "nat(src=")
	if !ok {
		return netip.Addr{}, false
	}
	text, _, _ := strings.Cut(rest, ")")
	a, err := netip.ParseAddr(text)
	return a, err == nil
}

func (w walker) flowMatches(match, inPort string) bool {
	for _, term := range strings.Split(match, ",") {
		if key, value, ok := strings.Cut(term, "="); ok {
			if !w.flowField(key, value, inPort) {
				return false
			}
		} else if !w.isProtocol(term) {
			return false
		}
	}
	return true
}

func (w walker) isProtocol(term string) bool {
	switch term {
	case "ip":
		return w.p.Src.Is4()
	case "ipv6":
		return w.p.Src.Is6()
	case w.p.Proto:
		return w.p.Src.Is4()
	case w.p.Proto + "6":
		return w.p.Src.Is6() // ND's messages, icmp6, are not walked
	}
	return false // nor is ARP
}

func (w walker) flowField(key, value, inPort string) bool {
	switch key {
	case "in_port":
		return value == inPort
	case "nw_src", "ipv6_src":
		return within(value, w.p.Src)
	case "nw_dst", "ipv6_dst":
		return within(value, w.p.Dst)
	case "tp_dst":
		return number(value) == int(w.p.DstPort)
	case "reg0":
		return number(value) == w.reg0
	case "pkt_mark":
		n, err := strconv.ParseInt(value, 0, 64)
		return err == nil && int(n) == w.mark
	case "dl_dst":
		return !strings.Contains(value, "/") // what is walked goes to one machine
	}
	return false // ct_state: only new connections come this way
}

func within(text string, a netip.Addr) bool {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Contains(a)
	}
	b, err := netip.ParseAddr(text)
	return err == nil && a == b
}
