package e2e

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/sandbox"
)

// pastTheSwitch: a pod that sends to the hardware address of the node's end of its link reaches nobody: OVN does not
// know that address, and the node's own stack, which sees what OVS' userspace datapath reads from links, does not
// listen. It would forward that, so that the pod left with its node's address whatever OVN has for it.
func pastTheSwitch(t *testing.T, n *namespace) {
	pod, node := "client", n.c.nodes[0]
	restore := n.gatewaysAre(pod, n.hostEnd(t, pod))
	client := n.client(pod)
	client.Timeout = 500 * time.Millisecond
	for _, to := range []endpoint{nodeServer(node), nodeServer(n.c.nodes[1]), n.c.outside(0)} {
		for _, ip := range to.ips {
			if answer, err := fetch(t.Context(), client, url(ip, to.port, "/clientip")); err == nil {
				t.Errorf("the pod reaches %s at %s past the switch, as %s", to.name, ip, answer)
			}
		}
	}
	restore()
	n.from(pod).to(n.c.outside(0)).arrivesAs(node.IPs...)
}

// hostEnd is the hardware address of the node's end of a pod's link.
func (n *namespace) hostEnd(t *testing.T, pod string) (mac net.HardwareAddr) {
	var index int
	must(t, n.inside(pod, func() error {
		link, err := netlink.LinkByName("eth0")
		if err == nil {
			index = link.Attrs().ParentIndex
		}
		return err
	}))
	must(t, sandbox.InNetns(n.at[pod], func() error {
		link, err := netlink.LinkByIndex(index)
		if err == nil {
			mac = link.Attrs().HardwareAddr
		}
		return err
	}))
	return mac
}

// gatewaysAre has a pod send all that leaves its subnets to a hardware address, until restore.
func (n *namespace) gatewaysAre(pod string, mac net.HardwareAddr) (restore func()) {
	set := func(mac net.HardwareAddr) {
		must(n.t, n.inside(pod, func() error {
			return eachGateway(func(g *netlink.Neigh) error {
				if g.State, g.HardwareAddr = netlink.NUD_PERMANENT, mac; mac == nil {
					return netlink.NeighDel(g)
				}
				return netlink.NeighSet(g)
			})
		}))
	}
	set(mac)
	return func() { set(nil) }
}

// eachGateway is for every default route of the namespace that it runs in.
func eachGateway(do func(*netlink.Neigh) error) error {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the pod's routes: %w", err)
	}
	var failed []error
	for _, r := range routes {
		if r.Gw != nil {
			failed = append(failed, do(&netlink.Neigh{LinkIndex: r.LinkIndex, IP: r.Gw}))
		}
	}
	return errors.Join(failed...)
}
