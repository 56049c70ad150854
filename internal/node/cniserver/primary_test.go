package cniserver_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plan"
)

// newNetworkLab has all pods in a network of their own.
func newNetworkLab(t *testing.T) *lab {
	l := newLab(t, "10.244.1.0/24", "fd00::/64")
	l.node.network = &cniserver.PrimaryNetwork{Names: plan.Names{Network: "cluster_udn_blue", ID: 1},
		Definition: "default/blue", MTU: 1300,
		Subnets: []netip.Prefix{netip.MustParsePrefix("10.9.1.0/24"), netip.MustParsePrefix("fd09::/64")}}
	return l
}

// TestPodInItsOwnNetwork: one ADD gives a pod both interfaces, ADD again and CHECK know both, also after a restart, and
// DEL leaves nothing of either.
func TestPodInItsOwnNetwork(t *testing.T) {
	l := newNetworkLab(t)
	p := l.pod("a", "c1")
	first := l.mustAdd(p)
	var have []string
	for _, ip := range first.IPs {
		have = append(have, fmt.Sprint(first.Interfaces[*ip.Interface].Name, " ", ip.Address.String(), " ", ip.Gateway))
	}
	want := []string{"eth0 10.244.1.3/24 <nil>", "eth0 fd00::3/64 <nil>", "ovn-udn1 10.9.1.3/24 10.9.1.1",
		"ovn-udn1 fd09::3/64 fd09::1"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("result (-want +have):\n%s", diff)
	}
	l.stop()
	l.start()
	if diff := cmp.Diff(first, l.mustAdd(p)); diff != "" {
		t.Errorf("ADD again (-first +again):\n%s", diff)
	}
	must(t, l.cni.CheckNetworkList(t.Context(), l.conflist("1.0.0"), p.conf))
	if next := l.mustAdd(l.pod("b", "c2")); next.IPs[2].Address.String() != "10.9.1.4/24" {
		t.Errorf("the next pod has %v", next.IPs[2])
	}
	must(t, p.netns.Do(func(ns.NetNS) error {
		link, err := netlink.LinkByName("ovn-udn1")
		if err == nil && link.Attrs().MTU != 1300 {
			err = fmt.Errorf("MTU %d", link.Attrs().MTU)
		}
		if err == nil {
			err = netlink.LinkSetDown(link)
		}
		return err
	}))
	if err := l.cni.CheckNetworkList(t.Context(), l.conflist("1.0.0"), p.conf); err == nil {
		t.Error("CHECK does not see that ovn-udn1 is down")
	}
	must(t, l.collect(t))
	l.wantNothingLeft()
}

// TestRoutesOfAPodInItsOwnNetwork: it leaves by its own network, and answers probes by the default one.
func TestRoutesOfAPodInItsOwnNetwork(t *testing.T) {
	l := newNetworkLab(t)
	p := l.pod("a", "c1")
	l.mustAdd(p)
	must(t, p.netns.Do(func(ns.NetNS) error {
		for to, dev := range map[string]string{"10.244.2.9": "eth0", "100.64.0.4": "eth0", "fd00::2": "eth0",
			"192.0.2.1": "ovn-udn1", "2001:db8::1": "ovn-udn1", "10.9.1.9": "ovn-udn1"} {
			routes, err := netlink.RouteGet(netip.MustParseAddr(to).AsSlice())
			if err != nil {
				return fmt.Errorf("%s: %w", to, err)
			}
			link, err := netlink.LinkByIndex(routes[0].LinkIndex)
			if err != nil || link.Attrs().Name != dev {
				t.Errorf("the way to %s is %v (%v), want %s", to, link, err, dev)
			}
		}
		return nil
	}))
	have, err := json.Marshal(l.node.annotations["default/a"]["default/blue"])
	must(t, err)
	const want = `{"ip_addresses":["10.9.1.3/24","fd09::3/64"],"mac_address":"0a:58:0a:09:01:03",` +
		`"gateway_ips":["10.9.1.1","fd09::1"],"role":"primary","network":"cluster_udn_blue"}`
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("annotation (-want +have):\n%s", diff)
	}
	if e := l.node.annotations["default/a"]["default"]; e.Role != "infrastructure-locked" || e.Gateways != nil {
		t.Errorf("of the default network: %+v", e)
	}
	must(t, l.del(p))
	l.wantNothingLeft()
}

// TestPodWaitsForItsNetwork: without a subnet nothing is made, and the runtime is told to try again.
func TestPodWaitsForItsNetwork(t *testing.T) {
	l := newNetworkLab(t)
	l.node.network.Subnets = nil
	_, err := l.add(l.pod("a", "c1"))
	wantCode(t, err, types.ErrTryAgainLater, "no subnet of network blue")
	l.wantNothingLeft()
}

// TestPoolsOfFormerNetworks: a network that the node has no subnet of any more is forgotten once another one comes and
// no container has an address of it.
func TestPoolsOfFormerNetworks(t *testing.T) {
	l := newNetworkLab(t)
	p, last := l.pod("a", "c1"), l.pod("b", "c2")
	l.mustAdd(p)
	blue := *l.node.network
	for _, name := range []string{"cluster_udn_green", "cluster_udn_red"} {
		next := blue
		next.Names = plan.Names{Network: name, ID: 2}
		l.node.network = &next
		l.mustAdd(last)
		want := []string{"cluster_udn_blue", "default", name}
		if name == "cluster_udn_red" {
			want = []string{"default", name}
		}
		slices.Sort(want)
		if have := l.server.Pools(); !slices.Equal(have, want) {
			t.Errorf("with %s there are pools of %q, want %q", name, have, want)
		}
		must(t, l.del(last))
		must(t, l.del(p))
	}
	l.wantNothingLeft()
}

// TestFailedAddInItsOwnNetwork leaves nothing of either interface.
func TestFailedAddInItsOwnNetwork(t *testing.T) {
	for _, step := range []string{"Annotate", "AddPodPort", "Attached", "WaitInstalled"} {
		l := newNetworkLab(t)
		l.faults.set(step)
		if _, err := l.add(l.pod("a", "c1")); err == nil {
			t.Errorf("%s fails and ADD does not", step)
		}
		l.wantNothingLeft()
	}
}
