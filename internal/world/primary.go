package world

import (
	"net/netip"
	"slices"
)

// settleHost makes the host's primary addresses those by which the kubelet made this node known, where the gateway
// bridge has them. A virtual address (VRRP) that comes or goes, or that was there first, changes nothing then.
func (w *World) settleHost() {
	if w.found == nil {
		return
	}
	h := *w.found
	if n := w.nodes[w.Self]; n != nil {
		h.Primary = ownAddrs(h.Primary, h.Uplink, n.InternalIPs)
	}
	if w.host != nil && w.host.equalHost(&h) {
		return
	}
	w.host = &h
	w.noteChanged(KindHost, "")
}

// ownAddrs are preferred, one a family, with what the kubelet tells in place of what the bridge has.
func ownAddrs(preferred, uplink []netip.Prefix, told []netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, f := range [...]Family{V4, V6} {
		own, is := f.Of(preferred)
		for _, ip := range f.OfAddrs(told) {
			if i := slices.IndexFunc(uplink, func(p netip.Prefix) bool { return p.Addr() == ip }); i >= 0 {
				own, is = uplink[i], true
				break
			}
		}
		if is {
			out = append(out, own)
		}
	}
	return out
}

// Host is this host's facts; nil until they were read.
func (w *View) Host() *Host {
	w.noteRead(KindHost, "")
	return w.host
}

// SetHost replaces the host's facts.
func (w *World) SetHost(h *Host) {
	w.found = h
	w.settleHost()
}

func (h *Host) equalHost(o *Host) bool {
	return h.UplinkMAC == o.UplinkMAC && h.MTU == o.MTU && slices.Equal(h.Primary, o.Primary) &&
		slices.Equal(h.Addrs, o.Addrs) && slices.Equal(h.LinkLocal, o.LinkLocal) &&
		slices.Equal(h.Gateways, o.Gateways) && slices.EqualFunc(h.Links, o.Links, Link.equalLink) &&
		slices.EqualFunc(h.Tables, o.Tables, HostTable.equalTable)
}
