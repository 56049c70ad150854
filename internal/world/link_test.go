package world_test

import (
	"net/netip"
	"testing"

	"github.com/egret-net/egret/internal/world"
)

// TestFaultsOfOverlappingNetworks: a link that cannot host is a fault of its network, though a longer one that begins
// with the same address is well; it is none if another link, or the primary network, has the very same.
func TestFaultsOfOverlappingNetworks(t *testing.T) {
	p := netip.MustParsePrefix
	link := func(name, addr, fault string) world.Link {
		return world.Link{Name: name, Addrs: []netip.Prefix{p(addr)}, Fault: [2]string{fault, fault}}
	}
	for name, x := range map[string]struct {
		primary, other string
		faulty         bool
	}{
		"alone":                          {"172.18.0.2/24", "172.19.0.2/24", true},
		"a longer one is primary":        {"10.0.0.5/24", "172.19.0.2/24", true},
		"a longer one is another link's": {"172.18.0.2/24", "10.0.0.5/24", true},
		"it is primary":                  {"10.0.0.5/8", "172.19.0.2/24", false},
		"another link has it":            {"172.18.0.2/24", "10.0.0.5/8", false},
	} {
		h := &world.Host{Primary: []netip.Prefix{p(x.primary)}, Links: []world.Link{link("eth1", "10.0.0.9/8", "down"),
			link("eth2", x.other, "")}}
		if fault := h.Faults()[p("10.0.0.0/8")]; (fault == "down") != x.faulty || len(h.Faults()) > 1 {
			t.Errorf("%s: faults %v", name, h.Faults())
		}
	}
}
