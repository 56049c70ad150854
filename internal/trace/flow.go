package trace

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// flow is one OpenFlow flow of the gateway bridge.
type flow struct {
	priority    int
	match, text string // text is its actions
	terms       []term
	actions     []action
}

// term is one field of a flow's match (ovs-fields(7)).
type term func(walker) bool

// parseFlow reads a flow's match and its actions, which a line end separates.
func parseFlow(text string) (flow, error) {
	match, list, _ := strings.Cut(text, "\n")
	f := flow{match: match, text: list}
	for _, t := range strings.FieldsFunc(match, func(r rune) bool { return r == ',' }) {
		parsed, err := parseTerm(t)
		if err != nil {
			return f, fmt.Errorf("the tracer does not know the field %q: %w", t, err)
		}
		f.terms = append(f.terms, parsed)
	}
	for _, a := range splitActions(list) {
		parsed, err := parseAction(a)
		if err != nil {
			return f, fmt.Errorf("the tracer does not know the action %q of %q: %w", a, list, err)
		}
		f.actions = append(f.actions, parsed)
	}
	return f, nil
}

func (f flow) matchesPacket(w walker) bool {
	return !slices.ContainsFunc(f.terms, func(t term) bool { return !t(w) })
}

var errUnknown = errors.New("unknown")

func parseTerm(text string) (term, error) {
	key, value, is := strings.Cut(text, "=")
	if !is {
		return parseProtocol(text)
	}
	switch key {
	case "in_port":
		return func(w walker) bool { return w.port == value }, nil
	case "nw_src", "ipv6_src", "nw_dst", "ipv6_dst":
		return parseAddressTerm(key, value)
	case "dl_src", "dl_dst":
		return parseFrameTerm(key, value)
	case "ct_state":
		return parseState(value)
	case "tp_dst", "reg0", "pkt_mark", "icmp_type":
		return parseNumberTerm(key, value)
	case "ct_mark": // a connection that was there before may have one, which no plan tells
		return func(walker) bool { return false }, nil
	case "hard_timeout": // how long the flow stays
		return func(walker) bool { return true }, nil
	case "arp_op", "arp_spa", "arp_tpa", "nd_target":
		return func(walker) bool { return false }, nil // neither ARP nor ND is walked
	case "nw_ttl": // of ND, which is not walked
		return func(walker) bool { return false }, nil
	case "nw_frag":
		return func(walker) bool { return false }, nil // walked packets are whole
	}
	return nil, errUnknown
}

func parseProtocol(text string) (term, error) {
	switch text {
	case "ip":
		return func(w walker) bool { return w.p.Src.Is4() }, nil
	case "ipv6":
		return func(w walker) bool { return w.p.Src.Is6() }, nil
	case "arp":
		return func(walker) bool { return false }, nil
	case "tcp", "udp", "sctp", "icmp":
		return func(w walker) bool { return w.p.Proto == text && w.p.Src.Is4() }, nil
	case "tcp6", "udp6", "sctp6", "icmp6":
		return func(w walker) bool { return w.p.Proto+"6" == text && w.p.Src.Is6() }, nil
	}
	return nil, errUnknown
}

func parseAddressTerm(key, value string) (term, error) {
	p, err := parsePrefix(value)
	if strings.HasSuffix(key, "_src") {
		return func(w walker) bool { return p.Contains(w.p.Src) }, err
	}
	return func(w walker) bool { return p.Contains(w.p.Dst) }, err
}

// multicast is what frames to many begin with. A walked packet goes to one machine.
const multicast = "01:00:00:00:00:00/01:00:00:00:00:00"

// parseFrameTerm reads a hardware address. A destination that the walk does not know is the one that is asked for.
func parseFrameTerm(key, value string) (term, error) {
	switch {
	case key == "dl_dst" && value == multicast:
		return func(walker) bool { return false }, nil
	case strings.Count(value, ":") != 5 || strings.Contains(value, "/"):
		return nil, errUnknown
	case key == "dl_dst":
		return func(w walker) bool { return w.frame.dst == "" || w.frame.dst == value }, nil
	}
	return func(w walker) bool { return w.frame.src == value }, nil
}

// parseNumberTerm reads a number, and of a mark of packets the bits that count.
func parseNumberTerm(key, value string) (term, error) {
	bits, masked := "", false
	if key == "pkt_mark" {
		value, bits, masked = strings.Cut(value, "/")
	}
	n, err := strconv.ParseUint(value, 0, 32)
	mask := uint64(1<<32 - 1)
	if masked && err == nil {
		mask, err = strconv.ParseUint(bits, 0, 32)
	}
	of := map[string]func(walker) int{
		"tp_dst":    func(w walker) int { return int(w.p.DstPort) },
		"reg0":      func(w walker) int { return w.reg0 },
		"pkt_mark":  func(w walker) int { return w.mark },
		"icmp_type": func(w walker) int { return w.p.echoType() },
	}[key]
	return func(w walker) bool { return of(w)&int(mask) == int(n) }, err
}

// echoType is the ICMP type of a walked packet: an echo request, or the reply to one (RFC 792, RFC 4443).
func (p Packet) echoType() int {
	switch {
	case p.Src.Is4() && p.Reply:
		return 0
	case p.Src.Is4():
		return 8
	case p.Reply:
		return 129
	}
	return 128
}

// parseState reads ct_state: "+trk+est-rpl". A packet is of a new connection, or it is a reply.
func parseState(text string) (term, error) {
	var want []string
	for i, r := range text {
		if r == '+' || r == '-' {
			want = append(want, text[i:min(i+4, len(text))])
		}
	}
	known := []string{"trk", "new", "est", "rel", "rpl"}
	if strings.Join(want, "") != text ||
		slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(known, s[1:]) }) {
		return nil, errUnknown
	}
	return func(w walker) bool {
		has := w.conntrackStates()
		return !slices.ContainsFunc(want, func(s string) bool { return has[s[1:]] != (s[0] == '+') })
	}, nil
}

// conntrackStates is what conntrack has said of the packet on the gateway bridge.
func (w walker) conntrackStates() map[string]bool {
	if !w.tracked {
		return nil
	}
	return map[string]bool{"trk": true, "new": !w.p.Reply, "est": w.p.Reply, "rpl": w.p.Reply}
}

// indexFlows reads the gateway bridge's flows.
func (r *Reader) indexFlows(z *zone) error {
	var failed []error
	uplinks := map[string]bool{}
	for k, list := range z.state.Flows.Rows() {
		f, err := r.flows.parseOnce(k.Match+"\n"+list, parseFlow)
		if port := inPort(k.Match); isUplink(port) {
			z.uplink, z.bridge = port, k.Bridge
			uplinks[port] = true
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("flow %s actions=%s: %w", k, list, err))
		}
		f.priority = k.Priority
		z.flows[k.Table] = append(z.flows[k.Table], f)
	}
	if len(uplinks) > 1 {
		failed = append(failed, fmt.Errorf("flows of several uplinks: %v", slices.Sorted(maps.Keys(uplinks))))
	}
	for _, flows := range z.flows {
		slices.SortFunc(flows, func(a, b flow) int {
			return firstNonZero(b.priority-a.priority, strings.Compare(a.match, b.match))
		})
	}
	return firstByText(failed)
}

// isUplink says of a port that is neither the host's nor a network's.
func isUplink(port string) bool {
	return port != "" && port != "LOCAL" && !strings.HasPrefix(port, "{"+plan.Patch)
}

func inPort(match string) string {
	_, rest, _ := strings.Cut(match, "in_port=")
	port, _, _ := strings.Cut(rest, ",")
	return port
}

// indexHost finds the host's own addresses.
func (z *zone) indexHost() {
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
