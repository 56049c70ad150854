package egressservice_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/feature/egressservice"
	"github.com/egret-net/egret/internal/world"
)

// TestHostsAreNoPods: with endpoints that are addresses of hosts, no node has a row more of an EgressService than with
// none: nothing that a host sends itself, such as to the API server, is marked, routed, translated or ended.
func TestHostsAreNoPods(t *testing.T) {
	features := []compile.Feature{egressservice.Hosts{}, egressservice.Pods{}}
	lines := func(self string, mode world.GatewayMode, table world.RoutingTable, endpoints ...netip.Addr) []string {
		w := compiletest.Small(self, mode)
		h := *compiletest.Host(self)
		h.Tables = []world.HostTable{{ID: 100, Default: [2]bool{true, true}}}
		w.SetHost(&h)
		for i := range 3 { // what runs on the hosts' network has the hosts' addresses
			p := compiletest.Pod(3*i, fmt.Sprint("n", i+1))
			p.HostNetwork, p.IPs = true, compiletest.Node(i + 1).HostAddrs[:2]
			w.SetPod(p)
		}
		s := compiletest.EgressService(0)
		s.Host, s.Table, s.InForce = "n1", table, [2]bool{true, true}
		for _, ip := range compiletest.EgressAddr(20) {
			s.Items = append(s.Items, world.Assignment{Node: "n1", IP: ip})
		}
		service := compiletest.LoadBalancer(0)
		for _, ip := range endpoints {
			service.Ports[0].Endpoints = append(service.Ports[0].Endpoints, world.Endpoint{Ready: true,
				AddrPort: netip.AddrPortFrom(ip, 80), Node: "n1"})
		}
		w.SetEgressService(s)
		w.SetService(service)
		return compile.Full(w, features).Lines()
	}
	var hosts []netip.Addr
	for i := range 3 {
		hosts = append(hosts, compiletest.Node(i+1).HostAddrs...)
	}
	for _, mode := range []world.GatewayMode{world.SharedGateway, world.LocalGateway} {
		for _, table := range []world.RoutingTable{{}, {Number: 100}} {
			for _, self := range names {
				none, with := lines(self, mode, table), lines(self, mode, table, hosts...)
				if self == "n1" && len(none) == 0 {
					t.Error("the host has no rows at all")
				}
				if !slices.Equal(none, with) {
					t.Errorf("%s, %v, table %q: have\n%v\nwithout endpoints\n%v", self, mode, table, with, none)
				}
			}
		}
	}
}

// TestMarkFollowsTheStatus: whatever the spec says already, or still, what is translated to the Service's address has
// another mark than what leaves with a link's: connections of the one are told from those of the other.
func TestMarkFollowsTheStatus(t *testing.T) {
	const translated, hidden = "0xf000064", "0xf800064"
	for _, by := range []world.SourceIPBy{world.SourceLoadBalancerIP, world.SourceNetwork} {
		for host, marks := range map[string][2]string{"n1": {translated, hidden}, world.HostAll: {hidden, translated}} {
			w := compiletest.Small("n1", world.SharedGateway)
			h := *compiletest.Host("n1")
			h.Tables = []world.HostTable{{ID: 100, Default: [2]bool{true, true}}}
			w.SetHost(&h)
			p := compiletest.Pod(0, "n1")
			w.SetPod(p)
			s := compiletest.EgressService(0)
			s.SourceIPBy, s.Host, s.Table = by, host, world.RoutingTable{Number: 100}
			for _, ip := range compiletest.EgressAddr(20) {
				s.Items = append(s.Items, world.Assignment{Node: "n1", IP: ip})
			}
			w.SetEgressService(s)
			w.SetService(compiletest.LoadBalancer(0, p))
			text := strings.Join(compile.Full(w, []compile.Feature{egressservice.Hosts{}}).Lines(), "\n")
			if !strings.Contains(text, marks[0]) || strings.Contains(text, marks[1]) {
				t.Errorf("by %d, host %s: want mark %s, and not %s:\n%s", by, host, marks[0], marks[1], text)
			}
		}
	}
}

// TestTableOfOneFamily: a table that leads outside over one family alone is a problem of the other.
func TestTableOfOneFamily(t *testing.T) {
	for name, leads := range map[string][2]bool{"IPv4": {false, true}, "IPv6": {true, false}, "": {true, true}} {
		w := compiletest.Small("n1", world.SharedGateway)
		h := *compiletest.Host("n1")
		h.Tables = []world.HostTable{{ID: 100, Default: leads}}
		w.SetHost(&h)
		p, s := compiletest.Pod(0, "n1"), compiletest.EgressService(0)
		s.SourceIPBy, s.Host, s.Table = world.SourceNetwork, world.HostAll, world.RoutingTable{Number: 100}
		w.SetPod(p)
		w.SetAttachment(compiletest.Attachment(p))
		w.SetEgressService(s)
		w.SetService(compiletest.LoadBalancer(0, p))
		var told []string
		for problem := range compile.Full(w, []compile.Feature{egressservice.Hosts{}, egressservice.Pods{}}).Problems {
			told = append(told, problem.Reason+" "+problem.Message)
		}
		all := strings.Join(told, "\n")
		if (name == "") != (len(told) == 0) || !strings.Contains(all, name) || len(told) > 1 {
			t.Errorf("a table that leads outside over %v: told %q, want one for %q", leads, told, name)
		}
	}
}
