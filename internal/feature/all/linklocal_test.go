package all_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestLinkLocalAddressesOfHosts: pods of the default network reach the link-local addresses of their own host, as that
// of NodeLocal DNSCache, beside networks of users and without them. They reach nothing else in the range of masquerade
// addresses, and pods of networks reach nothing there.
func TestLinkLocalAddressesOfHosts(t *testing.T) {
	cache, masquerade := netip.MustParseAddr("169.254.20.10"), netip.MustParseAddr("169.254.0.11") // blue's
	beyond := netip.MustParseAddr("169.254.200.10")
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		plans := trace.Network{}
		for _, self := range []string{"n1", "n2", "n3"} {
			w, h := blueWorld(self, mode), compiletest.Host(self)
			switch self {
			case "n1":
				h.LinkLocal = []netip.Addr{cache, beyond}
			case "n3": // blue's own address there, by mistake
				h.LinkLocal = []netip.Addr{masquerade}
				p := compiletest.Pod(5, "n3")
				w.SetPod(p)
				w.SetAttachment(compiletest.Attachment(p))
			}
			w.SetHost(h)
			plans[self] = compile.Full(w, all.Features())
		}
		w, h := compiletest.Small("n4", mode), compiletest.Host("n4") // no network is here
		h.LinkLocal = []netip.Addr{cache}
		p := compiletest.Pod(6, "n4")
		w.SetNode(compiletest.Node(4))
		w.SetHost(h)
		w.SetPod(p)
		w.SetAttachment(compiletest.Attachment(p))
		plans["n4"] = compile.Full(w, all.Features())
		c, err := trace.Read(plans)
		if err != nil {
			t.Fatal(err)
		}
		one, five, six := compiletest.PodIPs(2, 1)[0], compiletest.PodIPs(5, 3)[0], compiletest.PodIPs(6, 4)[0]
		for what, x := range map[string]struct {
			packet trace.Packet
			want   string
		}{
			"their own host's": {trace.Packet{Src: one, Dst: cache},
				"host 169.254.20.10 at n1 as " + one.String()},
			"one beyond the range": {trace.Packet{Src: one, Dst: beyond},
				"host 169.254.200.10 at n1 as " + one.String()},
			"without a network": {trace.Packet{Src: six, Dst: cache},
				"host 169.254.20.10 at n4 as " + six.String()},
			"a network's, and a host": {trace.Packet{Src: five, Dst: masquerade},
				"host 169.254.0.11 at n3 as " + five.String()},
			"a network's": {trace.Packet{Src: one, Dst: masquerade},
				"dropped at n1: policy networks/isolated-from/v4"},
			"no host's": {trace.Packet{Src: compiletest.PodIPs(3, 2)[0], Dst: cache},
				"dropped at n2: policy networks/isolated-from/v4"},
			"from a pod of a network": {trace.Packet{Src: blueIPs(1, 1)[0], Dst: cache, Network: blueNames},
				"dropped at n1: policy networks/isolated/v4"},
		} {
			x.packet.Proto, x.packet.SrcPort, x.packet.DstPort = "udp", 40000, 53
			if ends := c.Walk(x.packet); trace.Sentences(ends) != x.want {
				t.Errorf("%s gateway, %s: %s\nwant %s\n%v", mode, what, trace.Sentences(ends), x.want, ends)
			}
		}
	}
}
