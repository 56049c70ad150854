package trace

import (
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// balancer is a load balancer's row.
type balancer struct {
	name     string
	backends map[string][]netip.AddrPort // by address and port
	skipSNAT bool
	hairpin  []netip.Addr // sources of packets that come back to their sender
}

// addBalancer files a row by its group and protocol.
func (z *zone) addBalancer(id plan.RowID, group string, c *cells) {
	options := c.optionsOf("options")
	b := &balancer{name: id.Name, backends: map[string][]netip.AddrPort{}, skipSNAT: options["skip_snat"] == "true"}
	for _, text := range strings.Fields(options["hairpin_snat_ip"]) {
		b.hairpin = append(b.hairpin, c.parseAddr(text))
	}
	for vip, backends := range c.optionsOf("vips") {
		at := c.addrPort(vip).String()
		for _, text := range strings.FieldsFunc(backends, func(r rune) bool { return r == ',' }) {
			b.backends[at] = append(b.backends[at], c.addrPort(text))
		}
		z.balancers[frontend{group, c.textOf("protocol"), at}] = b
	}
}

// frontend is an address and port in the load balancers of one group.
type frontend struct{ group, protocol, vip string }

// balanceGroups is the load balancers of groups, and what follows: each backend may be the one.
func (w walker) balanceGroups(groups []string, next func(walker) []End) []End {
	vip := netip.AddrPortFrom(w.p.Dst, w.p.DstPort).String()
	for _, group := range groups {
		if b := w.ownZone().balancers[frontend{group, w.p.Proto, vip}]; b != nil && !w.p.Reply {
			return w.balancedBy(b, vip, next)
		}
	}
	return next(w)
}

func (w walker) balancedBy(b *balancer, vip string, next func(walker) []End) []End {
	if len(b.backends[vip]) == 0 {
		return w.endWith(Dropped, "rejected: %s has no backends", b.name)
	}
	var ends []End
	for _, to := range b.backends[vip] {
		ends = append(ends, next(w.toBackend(b, to))...)
	}
	return ends
}

// toBackend is the packet with a backend as destination. One that would come back to its sender gets another source.
func (w walker) toBackend(b *balancer, backend netip.AddrPort) walker {
	w.p.Dst, w.p.DstPort = backend.Addr(), backend.Port()
	w.balancer = b
	w = w.addStep("%s balances to %s", b.name, backend)
	if w.p.Src == w.p.Dst {
		for _, a := range b.hairpin {
			if a.Is4() == w.p.Src.Is4() {
				w.p.Src = a
			}
		}
	}
	return w
}
