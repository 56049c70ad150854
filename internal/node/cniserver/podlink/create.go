package podlink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Create makes the pair, with the pod's end directly in its namespace, and down. The node's end is up before anybody
// sees it: OVS 3.5 reads a port's flags, adds IFF_PROMISC and writes them back, and what was set up in between would be
// down again, for good. A pair of that name left by an attempt that was killed is replaced; an interface of that name
// in the pod is an error.
func Create(s Spec) error {
	pod, err := ns.GetNS(s.NetNS)
	if err != nil {
		return fmt.Errorf("open the pod's network namespace: %w", err)
	}
	defer pod.Close()
	if err := Delete(s.HostIface); err != nil {
		return err
	}
	err = netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: s.HostIface, MTU: s.MTU, TxQLen: -1, Flags: net.FlagUp},
		PeerName:  s.IfName, PeerHardwareAddr: s.MAC, PeerNamespace: netlink.NsFd(pod.Fd()), PeerTxQLen: -1,
		PeerMTU: uint32(s.MTU),
	})
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("interface %s is already in the pod's network namespace %s: %w", s.IfName, s.NetNS, err)
	}
	if err != nil {
		return fmt.Errorf("make veth %s: %w", s.HostIface, err)
	}
	return Seal(s.HostIface) // while the pod's end is down: the kernel has made no IPv6 address yet
}

// Delete removes the pair by the name on the node; a missing pair is not an error.
func Delete(hostIface string) error {
	link, err := findLink(hostIface)
	if err != nil || link == nil {
		return err
	}
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("delete veth %s: %w", hostIface, err)
	}
	return nil
}

// DeleteAll removes the pairs of all pods by their names' form, and returns how many there were.
func DeleteAll() (deleted int, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return 0, fmt.Errorf("list links: %w", err)
	}
	for _, l := range links {
		if l.Type() != "veth" || !isHostName(l.Attrs().Name) {
			continue
		}
		if err := Delete(l.Attrs().Name); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}

// Exists says whether the node has its end.
func Exists(hostIface string) (bool, error) {
	link, err := findLink(hostIface)
	return link != nil, err
}

func findLink(hostIface string) (netlink.Link, error) {
	link, err := netlink.LinkByName(hostIface)
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for veth %s: %w", hostIface, err)
	}
	return link, nil
}

// Configure sets up the pod's end of a pair that Create made: up, with addresses, routes and settings.
func Configure(s Spec) error {
	return ns.WithNetNSPath(s.NetNS, func(ns.NetNS) error { return configurePod(s) })
}

// configurePod runs in the pod's namespace.
func configurePod(s Spec) error {
	link, err := netlink.LinkByName(s.IfName)
	if err != nil {
		return fmt.Errorf("find %s in the pod: %w", s.IfName, err)
	}
	if err := prepareIPv6(s); err != nil {
		return err
	}
	if s.ChecksumInSoftware {
		if err := DisableTxChecksum(s.IfName); err != nil {
			return fmt.Errorf("turn checksum offload of %s off in the pod: %w", s.IfName, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up in the pod: %w", s.IfName, err)
	}
	for _, a := range s.Addrs {
		if err := netlink.AddrReplace(link, linkAddress(a)); err != nil {
			return fmt.Errorf("give the pod %s: %w", a, err)
		}
	}
	for _, r := range s.allRoutes() {
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(r.To), Gw: r.Via.AsSlice()}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("give the pod a route to %s via %s: %w", r.To, r.Via, err)
		}
	}
	return nameRouter(s, link)
}

// nameRouter has the pod know the router without asking. OVN answers ARP requests by flows, and neighbour solicitations
// by ovn-controller (nd_na_router, ovn-sb(5)): while that stands still, IPv6 would end some 10 s later.
func nameRouter(s Spec, link netlink.Link) error {
	for _, r := range s.allRoutes() {
		if r.Via.Is4() {
			continue
		}
		router := &netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT,
			IP: r.Via.AsSlice(), HardwareAddr: s.RouterMAC}
		if err := netlink.NeighSet(router); err != nil {
			return fmt.Errorf("tell the pod that %s has %s: %w", s.RouterMAC, r.Via, err)
		}
	}
	return nil
}

// linkAddress has no duplicate address detection: it would keep an IPv6 address tentative for a second, and addresses
// are given once.
func linkAddress(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: ipNet(p)}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// prepareIPv6 must run before the interface is up: the link-local address is made then, and would wait for duplicate
// address detection too. Some runtimes switch IPv6 off in a new namespace.
func prepareIPv6(s Spec) error {
	for _, a := range s.Addrs {
		if a.Addr().Is4() {
			continue
		}
		for key, value := range map[string]string{"disable_ipv6": "0", "accept_dad": "0", "accept_ra": "0"} {
			path := filepath.Join("/proc/sys/net/ipv6/conf", s.IfName, key)
			if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
				return fmt.Errorf("prepare %s in the pod for IPv6, has this kernel IPv6? %w", s.IfName, err)
			}
		}
	}
	return nil
}
