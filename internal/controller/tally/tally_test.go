package tally_test

import (
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/controller/tally"
	"github.com/egret-net/egret/internal/world"
)

// TestAddressTwiceInAStatus: a status may name one node twice for an address. All metrics are told all the same.
func TestAddressTwiceInAStatus(t *testing.T) {
	ip := netip.MustParseAddr("172.18.0.33")
	w, counts, r := world.New("", &world.Config{}), tally.New(), prometheus.NewRegistry()
	w.SetEgressIP(&world.EgressIP{Name: "e", IPs: []netip.Addr{ip}, Placement: world.Placement{
		Items: []world.Assignment{{Node: "n1", IP: ip}, {Node: "n1", IP: ip}}}})
	counts.BeginCount(w)
	counts.CountStale(w, 0)
	r.MustRegister(counts)
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
