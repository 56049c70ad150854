package trace

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// field is what a match asks of a packet. Beside has, one function is set: truth where the field needs no operator.
type field struct {
	has    predicate
	truth  predicate
	addr   func(env) netip.Addr
	number func(env) int
	text   func(env) string
}

// fieldOf is the field of that name, of those that Egret writes.
func fieldOf(name string) (field, bool) {
	always := func(env) bool { return true }
	switch name {
	case "ip4.src", "ip6.src":
		src := func(e env) netip.Addr { return e.p.Src }
		return field{has: ofFamily(src, name == "ip4.src"), addr: src}, true
	case "ip4.dst", "ip6.dst":
		dst := func(e env) netip.Addr { return e.p.Dst }
		return field{has: ofFamily(dst, name == "ip4.dst"), addr: dst}, true
	case "inport":
		return field{has: always, text: func(e env) string { return e.inport }}, true
	case "outport":
		return field{has: always, text: func(e env) string { return e.outport }}, true
	case "pkt.mark":
		return field{has: always, number: func(e env) int { return e.mark }}, true
	case "pkt.mark[4..9]":
		return field{has: always, number: func(e env) int { return e.mark >> 4 & 63 }}, true
	case "pkt.mark[14..15]":
		return field{has: always, number: func(e env) int { return e.mark >> 14 & 3 }}, true
	case "ct.trk":
		return field{truth: func(e env) bool { return e.tracked }}, true
	case "ct.rpl":
		return field{truth: func(e env) bool { return e.tracked && e.p.Reply }}, true
	case "ct.new":
		return field{truth: func(e env) bool { return (e.tracked || e.forced) && !e.p.Reply }}, true
	case "ip.is_frag":
		return field{truth: func(env) bool { return false }}, true // walked packets are whole
	case "ct_mark.force_snat":
		return field{has: func(e env) bool { return e.forced }, number: func(env) int { return 1 }}, true
	case "ip.later_frag", "arp": // walked packets are IP
		return field{truth: func(env) bool { return false }}, true
	case "arp.spa", "arp.tpa":
		return field{has: func(env) bool { return false }, addr: func(env) netip.Addr { return netip.Addr{} }}, true
	case "tcp", "udp", "sctp":
		return field{truth: func(e env) bool { return e.p.Proto == name }}, true
	case "icmp4.type", "icmp6.type":
		echo := map[string][2]int{"icmp4.type": {8, 0}, "icmp6.type": {128, 129}}[name]
		return field{has: func(e env) bool { return e.p.Proto == "icmp" && e.p.Dst.Is4() == (name == "icmp4.type") },
			number: func(e env) int {
				if e.p.Reply {
					return echo[1]
				}
				return echo[0]
			}}, true
	case "tcp.dst", "udp.dst", "sctp.dst":
		proto, _, _ := strings.Cut(name, ".")
		return field{has: func(e env) bool { return e.p.Proto == proto },
			number: func(e env) int { return int(e.p.DstPort) }}, true
	}
	return field{}, false
}

func ofFamily(of func(env) netip.Addr, v4 bool) predicate {
	return func(e env) bool { return of(e).Is4() == v4 }
}

// addressSet is an Address_Set with its members.
type addressSet struct {
	addrs    map[netip.Addr]bool
	prefixes []netip.Prefix
}

func (s *addressSet) addMember(text string) error {
	p, err := parsePrefix(text)
	switch {
	case err != nil:
		return fmt.Errorf("the tracer cannot read the member %q", text)
	case p.IsSingleIP():
		s.addrs[p.Addr()] = true
	default:
		s.prefixes = append(s.prefixes, p)
	}
	return nil
}

func (s *addressSet) hasAddr(a netip.Addr) bool {
	if s.addrs[a] {
		return true
	}
	for _, p := range s.prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// addSets fills the zone's address sets, once all are known. A member of a set that has no row is nowhere: a cluster of
// one family has none for the other's node addresses, and no match may name it.
func (z *zone) addSets(s *plan.State) error {
	for e := range s.SetElems.Rows() {
		set := z.sets[plan.SetName(e.Set)]
		if set == nil {
			continue
		}
		if err := set.addMember(e.Addr); err != nil {
			return fmt.Errorf("set %s: %w", e.Set, err)
		}
	}
	return nil
}

// addGroups fills the zone's groups of ports, once all are known.
func (z *zone) addGroups(s *plan.State) error {
	var failed []error
	for id, row := range s.NB.Rows() {
		for _, g := range row.Groups {
			ports := z.groups[plan.SetName(g.Name)]
			if ports == nil {
				failed = append(failed, fmt.Errorf("nb %s: there is no row %s", id, g))
				continue
			}
			name, _ := row.Cols["name"].(string)
			ports[name] = true
		}
	}
	return firstByText(failed)
}
