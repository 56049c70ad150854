package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/sandbox"
)

// The second node's link into the secondary network is in a VRF, whose table alone knows of a network behind a host
// there.
const (
	vrfLink  = "eth1"
	vrfName  = "red"
	vrfTable = "10"
)

var (
	vrfSelected = map[string]string{"app": "vrf"}
	vrfEgress   = []netip.Addr{netip.MustParseAddr("172.19.1.77"), netip.MustParseAddr("fc00:f853:cce:1::77")}
	vrfBehind   = []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8:51::1")}
)

// vrf: an egress IP on a link in a VRF. Pods of both nodes leave by the link and get their replies, to the link's own
// network and to one that only the VRF's table has a route to; the agent's copy of that table follows it. Without the
// agent's rule before the VRF's own there are no replies.
func (l *kernelLab) vrf() {
	node, host := l.nodes[1], l.ExternalHosts()[0]
	defer l.look(node)
	l.enslave(node, host)
	l.egressIP("vrf", vrfEgress, node, vrfSelected)
	far, near := l.pod("vrf-far", l.nodes[0], vrfSelected), l.pod("vrf-near", node, vrfSelected)
	seen := func(by []netip.Addr) {
		far.isSeenAs(vrfEgress, by, sandbox.ClientIPPort)
		near.isSeenAs(vrfEgress, by, sandbox.ClientIPPort)
	}
	seen(host.Secondary[0])
	l.ownRules(node)
	l.tableFollows(node, host)
	seen(vrfBehind)
	l.far.isSeenAs(egressIPs, l.outside, sandbox.ClientIPPort) // by the primary network, as before
	l.withoutReplyRule(node, near, host.Secondary[0][0])
	seen(host.Secondary[0])
}

// enslave moves a node's link into a VRF, whose table has a default route: what the kernel looks up there does not come
// to the main table. On the way the kernel takes the link's IPv6 addresses away.
func (l *kernelLab) enslave(node, host sandbox.Member) {
	l.in(node.Name, "ip", "link", "add", vrfName, "type", "vrf", "table", vrfTable)
	l.in(node.Name, "ip", "link", "set", vrfName, "up")
	l.in(node.Name, "ip", "link", "set", vrfLink, "master", vrfName)
	l.in(node.Name, "ip", "addr", "replace", netip.PrefixFrom(node.Secondary[0][1], 64).String(), "dev", vrfLink,
		"nodad")
	for _, via := range host.Secondary[0] {
		flag := map[bool]string{true: "-4", false: "-6"}[via.Is4()]
		l.in(node.Name, "ip", flag, "route", "add", "default", "via", via.String(), "dev", vrfLink, "table", vrfTable)
	}
}

// ownRules: the seed's, in the host's kernel, in both families; and the link's table has the VRF's routes.
func (l *kernelLab) ownRules(node sandbox.Member) {
	index := l.linkIndex(node)
	for flag, subnet := range map[string]string{"-4": "10.244.0.0/16", "-6": "fd00:10:244::/48"} {
		rules := l.in(node.Name, "ip", flag, "rule")
		for _, want := range []string{
			fmt.Sprintf("6000:\tfrom %s fwmark 0xe%06x lookup %d", subnet, index, 1000+index),
			"5999:\tfrom all fwmark 0x3f0 lookup main",
			fmt.Sprintf("999:\tfrom all to %s fwmark 0xe%06x lookup main", subnet, index),
			"1000:\tfrom all lookup [l3mdev-table]",
		} {
			if !strings.Contains(rules, want) {
				l.t.Errorf("ip %s rule of %s lacks %q:\n%s", flag, node.Name, want, rules)
			}
		}
	}
}

// look shows what the host has when the test has failed.
func (l *kernelLab) look(node sandbox.Member) {
	if !l.t.Failed() {
		return
	}
	for _, command := range []string{"ip rule", "ip -6 rule", "ip -d addr show dev eth1", "ip route show table all",
		"ip -6 route show table all",
		"nft list table inet egret", "ovn-nbctl lr-policy-list ovn_cluster_router", "ip neigh"} {
		out, err := l.ExecIn(context.Background(), node.Name, "sh", "-c", command)
		l.t.Logf("%s\n%s%v", command, out, err)
	}
	l.t.Log(l.api.recorded("/apis/egret.k8s.ovn.org/v1/egressnodes/" + node.Name))
}

func (l *kernelLab) linkIndex(node sandbox.Member) int {
	l.t.Helper()
	var index int
	err := inNetns(node.Name, func() error {
		link, err := net.InterfaceByName(vrfLink)
		if err == nil {
			index = link.Index
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return index
}

// tableFollows: routes that an administrator adds to the VRF's table are in the link's at once, and go with them.
func (l *kernelLab) tableFollows(node, host sandbox.Member) {
	behind := func(do string, to netip.Addr) []string {
		i := 0
		if to.Is6() {
			i = 1
		}
		return []string{"ip", "route", do, single(to), "via", host.Secondary[0][i].String(), "dev", vrfLink, "table",
			vrfTable}
	}
	passing := netip.MustParseAddr("198.51.100.9")
	for _, to := range append(vrfBehind, passing) {
		l.in(host.Name, "ip", "addr", "add", single(to), "dev", "lo")
		l.in(node.Name, behind("add", to)...)
		l.tableHas(node, to, true)
	}
	l.in(node.Name, behind("del", passing)...)
	l.tableHas(node, passing, false)
}

func single(ip netip.Addr) string { return netip.PrefixFrom(ip, ip.BitLen()).String() }

func (l *kernelLab) tableHas(node sandbox.Member, to netip.Addr, want bool) {
	l.t.Helper()
	flag := map[bool]string{true: "-4", false: "-6"}[to.Is4()]
	l.eventually(fmt.Sprintf("route to %s in the link's table: %t", to, want), func(ctx context.Context) error {
		routes, err := l.ExecIn(ctx, node.Name, "ip", flag, "route", "show", "table",
			fmt.Sprint(1000+l.linkIndex(node)))
		if err == nil && strings.Contains(string(routes), to.String()) != want {
			err = fmt.Errorf("the table is\n%s", routes)
		}
		return err
	})
}

// withoutReplyRule shows what the rule is for, while no agent puts it back; and that the agent does.
func (l *kernelLab) withoutReplyRule(node sandbox.Member, p pod, server netip.Addr) {
	ctx := l.t.Context()
	if err := l.StopProcess(ctx, node.Name, "egret-node"); err != nil {
		l.t.Fatal(err)
	}
	l.in(node.Name, "ip", "rule", "del", "priority", "999")
	at := netip.AddrPortFrom(server, sandbox.ClientIPPort)
	l.eventually("loss of replies without rule 999", func(ctx context.Context) error {
		if have, err := l.ask(ctx, node.Name, at, "ip", "netns", "exec", p.name); err == nil {
			return errors.New("still answered: seen as " + have.String())
		}
		return nil
	})
	if err := l.StartProcess(ctx, node.Name, "egret-node"); err != nil {
		l.t.Fatal(err)
	}
}
