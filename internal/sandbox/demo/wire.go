package demo

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/sandbox"
)

// uplink is the interface of nodes and hosts on the fabric; its address is the node's on the network, the bridge has it
// too.
const uplink = "eth0"

// wire tells from an external host's neighbour table which node really answers for an address, without regard to any
// status.
type wire struct {
	host  string
	table *netlink.Handle
	nodes map[string]string // name by MAC address
}

func openWire(host string, nodes []sandbox.Member) (*wire, error) {
	table, err := handleIn(host)
	if err != nil {
		return nil, err
	}
	w := &wire{host: host, table: table, nodes: map[string]string{}}
	for _, n := range nodes {
		mac, err := macOf(n.Name)
		if err != nil {
			w.closeTable()
			return nil, err
		}
		w.nodes[mac] = n.Name
	}
	return w, nil
}

func (w *wire) closeTable() { w.table.Close() }

// holderOf is the node that the host sends an address' packets to; empty if it knows none.
func (w *wire) holderOf(ip netip.Addr) (string, error) {
	family := unix.AF_INET6
	if ip.Is4() {
		family = unix.AF_INET
	}
	neighbours, err := w.table.NeighList(0, family)
	if err != nil {
		return "", fmt.Errorf("neighbour table of %s: %w", w.host, err)
	}
	for _, n := range neighbours {
		have, _ := netip.AddrFromSlice(n.IP)
		if have.Unmap() == ip && n.State&(netlink.NUD_FAILED|netlink.NUD_INCOMPLETE) == 0 {
			return w.nodes[n.HardwareAddr.String()], nil
		}
	}
	return "", nil
}

// handleIn opens the kernel's tables of a sandbox member's network namespace, which has the member's name.
func handleIn(member string) (*netlink.Handle, error) {
	ns, err := netns.GetFromName(member)
	if err != nil {
		return nil, fmt.Errorf("network namespace of %s: %w", member, err)
	}
	defer ns.Close()
	return netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
}

func macOf(node string) (string, error) {
	h, err := handleIn(node)
	if err != nil {
		return "", err
	}
	defer h.Close()
	link, err := h.LinkByName(uplink)
	if err != nil {
		return "", fmt.Errorf("%s of %s: %w", uplink, node, err)
	}
	return link.Attrs().HardwareAddr.String(), nil
}
