package pod

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// HostPorts is what this host's kernel may translate for hostPorts of UDP and SCTP. The portmap plugin makes the rules,
// and flushes what was tracked without them when it adds a pod (UDP alone). It flushes nothing when a pod goes. Then
// clients that go on sending from one port stay with the address that the pod had: where its successor was added while
// the former one still ended, or where that address is another pod's by now.
type HostPorts struct{}

func (HostPorts) Name() string    { return "pod-host-ports" }
func (HostPorts) Per() world.Kind { return world.KindAttachment }

// Compile adds a row for each address of the host that has the port.
func (HostPorts) Compile(w *world.View, key string, out *plan.Rows) {
	a, p, h := w.Attachment(key), w.Pod(key), w.Host()
	if a == nil || p == nil || h == nil || p.UID != a.UID {
		return
	}
	for _, port := range p.HostPorts {
		for _, ip := range a.IPs {
			for _, at := range hostPortAddresses(h, port, world.FamilyOf(ip)) {
				plan.Add(&out.Datagrams, plan.Datagram{Protocol: port.Protocol, From: netip.AddrPortFrom(at, port.Port),
					To: netip.AddrPortFrom(ip, port.To), Foreign: true}, plan.None{})
			}
		}
	}
}

// hostPortAddresses returns those that a family's clients reach the port at. A pod can name any address: the plugin
// translates connections to the host alone, and others' connections to that address are not the pod's.
func hostPortAddresses(h *world.Host, p world.HostPort, f world.Family) []netip.Addr {
	switch {
	case !p.IP.IsValid() || p.IP.IsUnspecified():
		return f.OfAddrs(h.Addrs)
	case p.IP.IsLoopback() || slices.Contains(h.Addrs, p.IP):
		return f.OfAddrs([]netip.Addr{p.IP})
	}
	return nil
}
