package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ensureFabric makes the bridge that everything is plugged into, in a network namespace of its own, with the primary
// network's gateway addresses on it.
func ensureFabric(l layout) error {
	if _, err := ensureNetns(l.fabricNetns()); err != nil {
		return err
	}
	return InNetns(l.fabricNetns(), func() error {
		if _, err := netlink.LinkByName(bridge); err == nil {
			return nil
		}
		quietIPv6()
		// Snooping would hold back IPv6 neighbour discovery until a querier shows up.
		snooping := false
		// Without an address of its own, a bridge takes the lowest of its ports' and changes it as they come and go.
		attrs := netlink.LinkAttrs{Name: bridge, HardwareAddr: hardwareAddr(gatewayNumber)}
		b := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}
		if err := netlink.LinkAdd(b); err != nil {
			return fmt.Errorf("make bridge %s: %w", bridge, err)
		}
		// Filters of the machine's br_netfilter have no business here.
		for _, table := range []string{"iptables", "ip6tables", "arptables"} {
			_ = writeSysctl("net/bridge/bridge-nf-call-"+table, "0") // absent without br_netfilter
		}
		return setUp(bridge, l, l.gateways())
	})
}

// plug connects an endpoint to the fabric with a fresh pair of links and gives it its addresses and default routes.
func plug(l layout, e endpoint) error {
	if _, err := ensureNetns(e.netns); err != nil {
		return err
	}
	if err := InNetns(l.fabricNetns(), func() error { return addPair(e) }); err != nil {
		return fmt.Errorf("connect %s to the fabric: %w", e.name, err)
	}
	err := InNetns(e.netns, func() error {
		quietIPv6()
		if err := setUp(uplink, l, e.ips); err != nil {
			return err
		}
		return addDefaultRoutes(l.gateways())
	})
	if err != nil {
		return fmt.Errorf("addresses of %s: %w", e.name, err)
	}
	return nil
}

// plugged says whether the endpoint's link to the fabric is there.
func plugged(l layout, e endpoint) bool {
	return isNetns(e.netns) && InNetns(l.fabricNetns(), func() error {
		_, err := netlink.LinkByName(e.port)
		return err
	}) == nil
}

// unplug takes an endpoint's link away, at once and from both sides.
func unplug(l layout, e endpoint) error {
	if !isNetns(l.fabricNetns()) {
		return nil
	}
	return InNetns(l.fabricNetns(), func() error {
		link, err := netlink.LinkByName(e.port)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil
		}
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
}

// addPair makes the two links; it runs in the fabric's namespace.
func addPair(e endpoint) error {
	ns, err := os.Open(netnsPath(e.netns))
	if err != nil {
		return err
	}
	defer ns.Close()
	master, err := netlink.LinkByName(bridge)
	if err != nil {
		return err
	}
	pair := netlink.NewVeth(netlink.LinkAttrs{Name: e.port, MasterIndex: master.Attrs().Index})
	pair.PeerName, pair.PeerNamespace, pair.PeerHardwareAddr = uplink, netlink.NsFd(int(ns.Fd())), e.mac
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	return netlink.LinkSetUp(pair)
}

// setUp brings lo and the named link up and gives the latter the addresses; it runs in their namespace.
func setUp(name string, l layout, ips []netip.Addr) error {
	for _, n := range []string{"lo", name} {
		link, err := netlink.LinkByName(n)
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		if n == "lo" {
			continue
		}
		if err := txChecksumOff(n); err != nil {
			return err
		}
		for _, ip := range ips {
			p := l.prefixed(ip)
			a := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(p.Bits(), ip.BitLen())}}
			if ip.Is6() {
				a.Flags = unix.IFA_F_NODAD
			}
			if err := netlink.AddrReplace(link, a); err != nil {
				return fmt.Errorf("address %s: %w", p, err)
			}
		}
	}
	return nil
}

func addDefaultRoutes(gateways []netip.Addr) error {
	link, err := netlink.LinkByName(uplink)
	if err != nil {
		return err
	}
	for _, gw := range gateways {
		zero := net.IPNet{IP: make(net.IP, gw.BitLen()/8), Mask: net.CIDRMask(0, gw.BitLen())}
		r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: &zero, Gw: gw.AsSlice()}
		if err := netlink.RouteReplace(r); err != nil {
			return fmt.Errorf("default route via %s: %w", gw, err)
		}
	}
	return nil
}

// quietIPv6 spares every address of the present namespace the second that duplicate address detection takes.
func quietIPv6() {
	for _, which := range []string{"all", "default"} {
		_ = writeSysctl("net/ipv6/conf/"+which+"/accept_dad", "0") // absent on a kernel without IPv6
		_ = writeSysctl("net/ipv6/conf/"+which+"/accept_ra", "0")
	}
}

func writeSysctl(path, value string) error {
	return os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0)
}
