package trace

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// uplink is the link by which packets leave that no rule of ours routes elsewhere.
const uplink = "uplink"

// host is the kernel of a node, for packets that come out of its management port, or from outside.
func (w walker) host() []End {
	w.mark, w.oif = 0, ""
	w.asked = netip.AddrPortFrom(w.p.Dst, w.p.DstPort)
	w = w.marked()
	if rule, ok := w.dropping("services-guard"); ok {
		return w.end(Dropped, "rejected: host rule %s", rule)
	}
	var ends []End
	for _, to := range w.destined("services-prerouting") {
		if to.local() {
			ends = append(ends, to.end(ToHost, "")...)
			continue
		}
		ends = append(ends, to.routed().outOfHost()...)
	}
	return ends
}

// local says whether the packet is for the host itself.
func (w walker) local() bool { return w.zone().local[w.p.Dst] != "" }

// outOfHost is the way of a packet that has been routed.
func (w walker) outOfHost() []End {
	if rule, ok := w.dropping("forward"); ok && w.iif != "" {
		return w.end(Dropped, "host rule %s", rule)
	}
	w, dropped := w.translated("OVN-KUBE-EGRESS-IP-MULTI-NIC", plan.PostroutingChain)
	if dropped != "" {
		return w.end(Dropped, "host rule %s", dropped)
	}
	if rule, ok := w.dropping("egress-ip-guard"); ok {
		return w.end(Dropped, "host rule %s", rule)
	}
	switch w.oif {
	case uplink:
		return w.bridge("LOCAL")
	case w.names.ManagementPort():
		return w.nodeSwitch()
	}
	return w.arrive()
}

// marked is what the prerouting chain makes of the packet.
func (w walker) marked() walker {
	for _, rule := range w.rules("egress-ip-mark") {
		if verdict, ok := w.applies(rule); ok && strings.HasPrefix(verdict, "meta mark set 0x") {
			n, _ := strconv.ParseUint(strings.Fields(verdict)[3], 0, 32)
			w.mark = int(n)
			w = w.step("host rule %s", rule)
		}
	}
	return w
}

// routed finds the link by the policy routing rules of ours.
func (w walker) routed() walker {
	var rules []plan.Rule
	for r := range w.zone().state.Rules.Rows() {
		if r.V6 == w.p.Src.Is6() && uint32(w.mark)&r.Mask == r.Mark && in(r.Src, w.p.Src) && in(r.Dst, w.p.Dst) {
			rules = append(rules, r)
		}
	}
	slices.SortFunc(rules, func(a, b plan.Rule) int { return a.Priority - b.Priority })
	w.oif = uplink
	if dev, ok := w.lookup(mainTable); ok {
		w.oif = dev
	}
	for _, r := range rules {
		if dev, ok := w.lookup(r.Table); ok {
			w.oif = dev
			return w.step("rule %s, by %s", r, dev)
		}
	}
	return w
}

// mainTable is looked up for what no rule of ours routes.
const mainTable = 254

// lookup is the longest route of a table.
func (w walker) lookup(table int) (dev string, ok bool) {
	longest := -1
	for k, r := range w.zone().state.Routes.Rows() {
		if k.Table == table && k.Dst.Contains(w.p.Dst) && k.Dst.Bits() > longest {
			longest, dev = k.Dst.Bits(), r.Dev
		}
	}
	return dev, longest >= 0
}

// in takes a zero prefix for all.
func in(p netip.Prefix, a netip.Addr) bool { return !p.IsValid() || p.Contains(a) }

// dropping is the rule of a filter chain that drops the packet, or rejects it.
func (w walker) dropping(chain string) (rule string, ok bool) {
	for _, rule := range w.rules(chain) {
		if verdict, ok := w.applies(rule); ok && (verdict == "drop" || strings.HasPrefix(verdict, "reject")) {
			return rule, true
		}
	}
	return "", false
}

// translated is what the first rule of the chains that translates makes of the packet. An accept ends its own chain.
func (w walker) translated(chains ...string) (out walker, dropped string) {
	for _, chain := range chains {
	rules:
		for _, rule := range w.rules(chain) {
			verdict, ok := w.applies(rule)
			words := strings.Fields(verdict)
			switch {
			case !ok || len(words) == 0:
				continue
			case words[0] == "drop":
				return w, rule
			case words[0] == "accept":
				w = w.step("host rule %s", rule)
				break rules
			case words[0] == "snat":
				w.p.Src, _ = netip.ParseAddr(words[len(words)-1])
			default:
				w.p.Src = w.linkAddress()
			}
			return w.step("host rule %s", rule), ""
		}
	}
	return w, ""
}

// rules are a chain's rules in order.
func (w walker) rules(chain string) []string {
	type named struct{ name, text string }
	var all []named
	for r, text := range w.zone().state.NFTRules.Rows() {
		if r.Chain == (plan.NFTChain{Family: "inet", Name: chain}) {
			all = append(all, named{r.Name, text})
		}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
	var out []string
	for _, r := range all {
		out = append(out, r.text)
	}
	return out
}

// linkAddress is the address that masquerading gives: the uplink's, which the gateway router shares, or the management port's. That of other links
// no plan tells.
func (w walker) linkAddress() netip.Addr {
	for a := range w.zone().state.Addrs.Rows() {
		if dev := w.names.ManagementPort(); a.Dev == dev && w.oif == dev && a.Prefix.Addr().Is4() == w.p.Src.Is4() {
			return a.Prefix.Addr()
		}
	}
	r := w.zone().routers[w.names.GatewayRouter(w.node)]
	if w.oif != uplink || r == nil {
		return netip.Addr{}
	}
	for _, p := range r.networks[w.names.GatewayToExternal(w.node)] {
		if p.Addr().Is4() == w.p.Src.Is4() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// applies reads a rule of ours: comparisons, "counter", and what is left, a statement or a verdict.
func (w walker) applies(rule string) (verdict string, ok bool) {
	words := strings.Fields(rule)
	for len(words) > 0 {
		n, holds := w.condition(words)
		if n == 0 {
			return strings.Join(words, " "), true
		}
		if !holds {
			return "", false
		}
		words = words[n:]
	}
	return "", true
}

// condition reads one, and says how many words that were; 0 for a statement.
func (w walker) condition(words []string) (n int, holds bool) {
	switch words[0] {
	case "counter":
		return 1, true
	case "iifname", "oifname":
		n, holds := compare(words[1:], func(v string) bool { return w.interfaceIs(words[0], strings.Trim(v, `"`)) })
		return n + 1, holds
	case "fib":
		n, holds := compare(words[3:], func(string) bool { return w.zone().local[w.p.Src] != "" }) // fib saddr type local
		return n + 3, holds
	case "ip", "ip6":
		if words[2] == "." {
			return w.joined(words)
		}
		n, holds := compare(words[2:], func(v string) bool { return w.within(v, w.field(words[1])) })
		return n + 2, holds && (words[0] == "ip") == w.p.Src.Is4()
	case "ct":
		switch words[1] {
		case "direction":
			return 3, (words[2] == "reply") == w.p.Reply
		case "state":
			return 3, (words[2] == "new") != w.p.Reply
		case "original":
			return w.joined(words)
		}
		n, holds := w.metaCondition(words[1:]) // a connection has the mark of its first packet; replies are not walked back
		return n, holds && !w.p.Reply
	case "meta":
		return w.metaCondition(words[1:])
	}
	return 0, false
}

// metaCondition reads `mark [& MASK] [!=] VALUE` and `nfproto NAME`, after meta.
func (w walker) metaCondition(words []string) (n int, holds bool) {
	number := func(s string) int { v, _ := strconv.ParseUint(s, 0, 32); return int(v) }
	switch {
	case words[0] == "nfproto":
		return 3, (words[1] == "ipv4") == w.p.Src.Is4()
	case words[0] == "l4proto":
		return w.protocolCondition(words[1:])
	case words[1] == "set":
		return 0, false
	case words[1] == "&":
		n, holds := compare(words[3:], func(v string) bool { return w.mark&number(words[2]) == number(v) })
		return n + 4, holds
	}
	n, holds = compare(words[1:], func(v string) bool { return w.mark == number(v) })
	return n + 2, holds
}

func (w walker) field(name string) netip.Addr {
	if name == "saddr" {
		return w.p.Src
	}
	return w.p.Dst
}

// within is for a prefix, an address, or @SET.
func (w walker) within(text string, a netip.Addr) bool {
	if set, ok := strings.CutPrefix(text, "@"); ok {
		_, has := w.zone().state.NFTElems[plan.NFTElem{Set: set, Key: a.String()}]
		return has
	}
	return within(text, a)
}

// interfaceIs is for the link that the packet came in by, or goes out by.
func (w walker) interfaceIs(direction, name string) bool {
	if direction == "iifname" {
		return name == w.iif
	}
	return name == w.oif
}

// compare reads `[!=] value` and says how many words that were.
func compare(words []string, equals func(string) bool) (n int, holds bool) {
	if words[0] == "!=" {
		return 2, !equals(words[1])
	}
	return 1, equals(words[0])
}
