package holder_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/holder"
	"github.com/egret-net/egret/internal/world"
)

// TestServiceGetsAddressLater: a host translates to an EgressService's address once the Service has come with it, and
// then as long as it holds the address.
func TestServiceGetsAddressLater(t *testing.T) {
	w, service := compiletest.Small("n1", world.SharedGateway), compiletest.LoadBalancer(0)
	s := compiletest.EgressService(0)
	addresses := service.LoadBalancerIPs
	s.Host, s.Items = "n1", []world.Assignment{{Node: "n1", IP: addresses[0]}}
	w.SetEgressService(s)
	check := func(what string, want bool) {
		t.Helper()
		if is := len(holder.Duties(&w.View, s.Key(), world.V4)) > 0; is != want {
			t.Errorf("%s: translates: %t", what, is)
		}
	}
	gets := func(ips ...netip.Addr) {
		now := *service
		now.LoadBalancerIPs = ips
		w.SetService(&now)
	}
	check("no Service", false)
	gets(compiletest.EgressAddr(30)...)
	check("another address", false)
	gets(addresses...)
	check("this address", true)
	w.SetOwn(&world.Holding{Node: "n1", BootID: "boot-n1", Holds: map[string][]netip.Addr{s.Key(): addresses[:1]}})
	gets()
	check("no address any more", true)
}
