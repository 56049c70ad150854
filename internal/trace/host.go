package trace

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// host is the kernel of a node, for packets that come out of its management port.
func (w walker) host() []End {
	if w.zone().local[w.p.Dst] != "" {
		return w.end(ToHost, "")
	}
	for _, rule := range w.rules("forward") {
		if verdict, ok := w.applies(rule); ok && verdict == "drop" {
			return w.end(Dropped, "host rule %s", rule)
		}
	}
	for _, rule := range w.rules("postrouting") {
		if verdict, ok := w.applies(rule); ok && verdict == "masquerade" {
			w.p.Src = w.uplinkAddress()
			w = w.step("host rule %s", rule)
			break
		}
	}
	return w.bridge("LOCAL")
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

// uplinkAddress is the address that masquerading over the uplink gives.
func (w walker) uplinkAddress() netip.Addr {
	for a, dev := range w.zone().local {
		if dev == "uplink" && a.Is4() == w.p.Src.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// applies reads a rule of ours: comparisons, "counter", and a verdict.
func (w walker) applies(rule string) (verdict string, ok bool) {
	words := strings.Fields(rule)
	for len(words) > 0 {
		switch words[0] {
		case "counter":
			words = words[1:]
		case "iifname", "oifname":
			n, holds := compare(words[1:], func(v string) bool { return w.interfaceIs(words[0], strings.Trim(v, `"`)) })
			if words = words[1+n:]; !holds {
				return "", false
			}
		case "ip", "ip6":
			if (words[0] == "ip") != w.p.Src.Is4() {
				return "", false
			}
			n, holds := compare(words[2:], func(v string) bool { return within(v, w.field(words[1])) })
			if words = words[2+n:]; !holds {
				return "", false
			}
		default:
			return words[0], true
		}
	}
	return "", true
}

func (w walker) field(name string) netip.Addr {
	if name == "saddr" {
		return w.p.Src
	}
	return w.p.Dst
}

// interfaceIs knows that the packet came from the management port and leaves by the uplink.
func (w walker) interfaceIs(direction, name string) bool {
	return (direction == "iifname") == (name == "ovn-k8s-mp0")
}

// compare reads `[!=] value` and says how many words that were.
func compare(words []string, equals func(string) bool) (n int, holds bool) {
	if words[0] == "!=" {
		return 2, !equals(words[1])
	}
	return 1, equals(words[0])
}
