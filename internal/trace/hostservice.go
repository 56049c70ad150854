package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// WalkFromHost sends a packet from a process of a node's host. Without a source it gets that of the link by which the host routes it.
func WalkFromHost(net Network, node string, p Packet) []End {
	w := start(net, p)
	w.node = node
	if !p.Src.IsValid() {
		w.p.Src = p.Dst // of its family
		w = w.routed()
		w.p.Src = w.linkAddress()
	}
	w.asked = netip.AddrPortFrom(w.p.Dst, w.p.DstPort)
	w = w.step("from the host")
	if rule, ok := w.dropping("services-guard-output"); ok {
		return w.end(Dropped, "host rule %s", rule)
	}
	var ends []End
	for _, to := range w.destined("services-output") {
		if to.local() {
			ends = append(ends, to.end(ToHost, "")...)
			continue
		}
		ends = append(ends, to.routed().outOfHost()...)
	}
	return ends
}

// WalkIntoHost sends a packet from outside to a node's host, by one of its links: "breth0" where the gateway bridge has given it to the host.
func WalkIntoHost(net Network, node, link string, p Packet) []End {
	w := start(net, p)
	w.node, w.iif = node, link
	return w.step("in by %s", link).host()
}

// destined is the packet with each destination that the rules of a chain may give it; with its own if none does.
func (w walker) destined(chain string) []walker {
	for _, rule := range w.rules(chain) {
		verdict, ok := w.applies(rule)
		_, name, is := strings.Cut(verdict, " map @")
		if !ok || !is || !strings.HasPrefix(verdict, "dnat ") {
			continue
		}
		if found := w.mapped(name); len(found) > 0 {
			var out []walker
			for _, to := range found {
				next := w.step("host rule %s: %s", rule, to)
				next.p.Dst, next.p.DstPort = to.Addr(), to.Port()
				out = append(out, next)
			}
			return out
		}
	}
	return []walker{w}
}

// mapped are the values of a map for the packet's destination, in order; with slots there are several.
func (w walker) mapped(name string) []netip.AddrPort {
	var found []netip.AddrPort
	for e, value := range w.zone().state.NFTElems.Rows() {
		key, _, _ := strings.Cut(e.Key+" . ", w.destination()+" . ")
		ip, port, _ := strings.Cut(value, " . ")
		if to, err := netip.ParseAddrPort(bracketed(ip) + ":" + port); e.Set == name && key == "" && err == nil {
			found = append(found, to)
		}
	}
	slices.SortFunc(found, netip.AddrPort.Compare)
	return found
}

func bracketed(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

// destination is the packet's, as a key of sets and maps.
func (w walker) destination() string {
	return fmt.Sprintf("%s . %s . %d", w.p.Dst, w.p.Proto, w.p.DstPort)
}

// joined reads a concatenation, as rules for Services have it, and `[!=] @SET` after it.
func (w walker) joined(words []string) (n int, holds bool) {
	end := slices.IndexFunc(words, func(s string) bool { return strings.HasPrefix(s, "@") })
	if end < 0 {
		return 0, false
	}
	parts := words[:end]
	negate := parts[len(parts)-1] == "!="
	sameFamily := slices.Contains(parts, "ip") == w.p.Dst.Is4()
	return end + 1, sameFamily && w.inSet(strings.TrimPrefix(words[end], "@"), parts) != negate
}

func (w walker) inSet(set string, parts []string) bool {
	key := w.destination()
	if parts[0] == "ct" {
		key = fmt.Sprintf("%s . %s . %d", w.asked.Addr(), w.p.Proto, w.asked.Port())
	}
	if parts[1] != "saddr" {
		_, has := w.zone().state.NFTElems[plan.NFTElem{Set: set, Key: key}]
		return has
	}
	for e := range w.zone().state.NFTElems.Rows() {
		from, at, _ := strings.Cut(e.Key, " . ")
		if e.Set == set && at == key && within(from, w.p.Src) {
			return true
		}
	}
	return false
}

// protocolCondition reads a protocol or { A, B } after meta l4proto.
func (w walker) protocolCondition(words []string) (n int, holds bool) {
	if words[0] != "{" {
		n, holds := compare(words, func(v string) bool { return v == w.p.Proto })
		return n + 2, holds
	}
	end := slices.Index(words, "}")
	return end + 3, slices.ContainsFunc(words[1:end], func(v string) bool { return strings.TrimSuffix(v, ",") == w.p.Proto })
}
