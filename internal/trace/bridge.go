package trace

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// flow is one OpenFlow flow of a gateway bridge's first table.
type flow struct {
	priority       int
	match, actions string
}

func (z *zone) indexHost() {
	for f, actions := range z.state.Flows.Rows() {
		if f.Table == 0 {
			z.flows = append(z.flows, flow{f.Priority, f.Match, actions})
		}
	}
	slices.SortFunc(z.flows, func(a, b flow) int { return either(b.priority-a.priority, strings.Compare(a.match, b.match)) })
	for id, row := range z.state.NB.Rows() {
		if id.Table == "Logical_Router_Policy" && strings.HasPrefix(id.Name, "own-node/") && row.Parent.Name != "" {
			if a, err := netip.ParseAddr(strings.TrimPrefix(id.Name, "own-node/")); err == nil {
				z.local[a] = "uplink"
			}
		}
	}
	for a := range z.state.Addrs.Rows() {
		z.local[a.Prefix.Addr()] = a.Dev
	}
}

// bridge is the way out over the gateway bridge, from OVN or from the host.
func (w walker) bridge(inPort string) []End {
	for _, f := range w.zone().flows {
		if !w.flowMatches(f.match, inPort) {
			continue
		}
		w = w.step("flow priority=%d,%s actions=%s", f.priority, f.match, f.actions)
		if f.actions == "drop" {
			return w.end(Dropped, "flow priority=%d,%s", f.priority, f.match)
		}
		if src, ok := translation(f.actions); ok && !w.p.Reply {
			w.p.Src = src
		}
		return w.arrive()
	}
	return w.end(Dropped, "no flow of the gateway bridge takes it")
}

// arrive is the nodes' network: another node's host, or beyond.
func (w walker) arrive() []End {
	for name, z := range w.net {
		if dev := z.local[w.p.Dst]; dev == "uplink" && name != w.node {
			from := w.node
			w.node = name
			return w.step("from %s over the nodes' network", from).end(ToHost, "")
		}
	}
	return w.end(Outside, "")
}

// translation reads nat(src=A) out of an action list.
func translation(actions string) (netip.Addr, bool) {
	_, rest, ok := strings.Cut(actions, "nat(src=")
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
	}
	return false // ARP and ND are not walked
}

func (w walker) flowField(key, value, inPort string) bool {
	switch key {
	case "in_port":
		return value == inPort
	case "nw_src", "ipv6_src":
		return within(value, w.p.Src)
	case "nw_dst", "ipv6_dst":
		return within(value, w.p.Dst)
	case "pkt_mark":
		n, err := strconv.ParseInt(value, 0, 64)
		return err == nil && int(n) == w.mark
	}
	return false
}

func within(text string, a netip.Addr) bool {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Contains(a)
	}
	b, err := netip.ParseAddr(text)
	return err == nil && a == b
}
