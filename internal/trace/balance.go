package trace

import (
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// balancer is a load balancer's row.
type balancer struct {
	name     string
	backends map[string]string // by address and port
	skipSNAT bool
	hairpin  []netip.Addr // sources of packets that come back to their sender
}

// addBalancer files a row by its group and protocol.
func (z *zone) addBalancer(id plan.RowID, row plan.Row) {
	options, _ := row.Cols["options"].(map[string]string)
	vips, _ := row.Cols["vips"].(map[string]string)
	protocol, _ := row.Cols["protocol"].(string)
	b := &balancer{name: id.Name, backends: vips, skipSNAT: options["skip_snat"] == "true"}
	for _, text := range strings.Fields(options["hairpin_snat_ip"]) {
		if a, err := netip.ParseAddr(text); err == nil {
			b.hairpin = append(b.hairpin, a)
		}
	}
	for vip := range vips {
		z.balancers[frontend{row.Parent.Name, protocol, vip}] = b
	}
}

// frontend is an address and port in the load balancers of one group.
type frontend struct{ group, protocol, vip string }

// balanced is the load balancers of a group, and what follows: each backend may be the one.
func (w walker) balanced(group string, next func(walker) []End) []End {
	vip := netip.AddrPortFrom(w.p.Dst, w.p.DstPort).String()
	b := w.zone().balancers[frontend{group, w.p.Proto, vip}]
	if b == nil || w.p.Reply {
		return next(w)
	}
	if b.backends[vip] == "" {
		return w.end(Dropped, "rejected: %s has no backends", b.name)
	}
	var ends []End
	for _, text := range strings.Split(b.backends[vip], ",") {
		to, err := netip.ParseAddrPort(text)
		if err != nil {
			return w.end(Dropped, "%s: %v", b.name, err)
		}
		ends = append(ends, next(w.to(b, to))...)
	}
	return ends
}

// to is the packet with a backend as destination. One that would come back to its sender gets another source.
func (w walker) to(b *balancer, backend netip.AddrPort) walker {
	w.p.Dst, w.p.DstPort = backend.Addr(), backend.Port()
	w.balancer = b
	w = w.step("%s balances to %s", b.name, backend)
	if w.p.Src == w.p.Dst {
		for _, a := range b.hairpin {
			if a.Is4() == w.p.Src.Is4() {
				w.p.Src = a
			}
		}
	}
	return w
}
