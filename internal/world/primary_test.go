package world

import (
	"net/netip"
	"testing"
)

// TestHostFollowsTheKubelet: the host is touched when what the kubelet tells makes another of its addresses the node's
// own, and by nothing else.
func TestHostFollowsTheKubelet(t *testing.T) {
	own, virtual := netip.MustParsePrefix("172.18.0.20/16"), netip.MustParsePrefix("172.18.0.2/32")
	host := func(primary netip.Prefix, uplink ...netip.Prefix) *Host {
		return &Host{Primary: []netip.Prefix{primary}, Uplink: uplink}
	}
	w := New("n1", &Config{})
	for i, x := range []struct {
		change  func()
		touched bool
		primary netip.Prefix
	}{
		{func() { w.SetHost(host(virtual, virtual, own)) }, true, virtual},
		{func() { w.SetNode(&Node{Name: "n2", InternalIPs: []netip.Addr{own.Addr()}}) }, false, virtual},
		{func() { w.SetNode(&Node{Name: "n1", InternalIPs: []netip.Addr{own.Addr()}}) }, true, own},
		{func() { w.SetHost(host(own, own)) }, false, own},
		{func() { w.SetHost(host(virtual, own, virtual)) }, false, own},
		{func() { w.SetNode(&Node{Name: "n1"}) }, true, virtual},
	} {
		touched := false
		for _, touch := range w.ChangesOf(x.change) {
			touched = touched || touch.Kind == KindHost
		}
		if have := w.Host().Primary; touched != x.touched || len(have) != 1 || have[0] != x.primary {
			t.Errorf("%d: touched %v, the node's own are %v; want %v, %v", i, touched, have, x.touched, x.primary)
		}
	}
}
