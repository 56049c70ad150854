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

	"github.com/egret-net/egret/internal/node/cniserver/podlink"
)

// ensureFabric makes the bridges that everything is plugged into, in a network namespace of their own. The primary
// network's gateway addresses are on the first; secondary networks lead nowhere else.
func ensureFabric(l layout) error {
	if _, err := ensureNetns(l.fabricNetns()); err != nil {
		return err
	}
	return InNetns(l.fabricNetns(), func() error {
		if err := ensureBridge(bridge, 0, l.prefixedAll(l.gatewayAddresses())); err != nil {
			return err
		}
		for i := range l.secondary {
			if err := ensureBridge(secondaryBridge(i+1), i+1, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// ensureBridge makes the bridge of the network of eth<i>.
func ensureBridge(name string, i int, ips []netip.Prefix) error {
	if _, err := netlink.LinkByName(name); err == nil {
		return nil
	}
	quietIPv6()
	// Snooping would hold back IPv6 neighbour discovery until a querier shows up.
	snooping := false
	// Without an address of its own, a bridge takes the lowest of its ports' and changes it as they come and go.
	attrs := netlink.LinkAttrs{Name: name, HardwareAddr: hardwareAddr(i, gatewayNumber)}
	b := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &snooping}
	if err := netlink.LinkAdd(b); err != nil {
		return fmt.Errorf("make bridge %s: %w", name, err)
	}
	// Filters of the machine's br_netfilter have no business here.
	for _, table := range []string{"iptables", "ip6tables", "arptables"} {
		_ = writeSysctl("net/bridge/bridge-nf-call-"+table, "0") // absent without br_netfilter
	}
	return setUp(name, ips)
}

// plugEndpoint connects an endpoint to the fabric with a fresh pair of links for each network and gives it its
// addresses and default routes.
func plugEndpoint(l layout, e endpoint) error {
	if _, err := ensureNetns(e.netns); err != nil {
		return err
	}
	links := append([]fabricLink{{bridge, e.port, uplink, e.mac, l.prefixedAll(e.ips)}}, e.secondary...)
	if err := InNetns(l.fabricNetns(), func() error { return addPairs(e, links) }); err != nil {
		return fmt.Errorf("connect %s to the fabric: %w", e.name, err)
	}
	err := InNetns(e.netns, func() error {
		quietIPv6()
		for _, link := range links {
			if err := setUp(link.name, link.ips); err != nil {
				return err
			}
		}
		return addDefaultRoutes(l.gatewayAddresses())
	})
	if err != nil {
		return fmt.Errorf("addresses of %s: %w", e.name, err)
	}
	return nil
}

// isPlugged says whether the endpoint's link to the fabric is there.
func isPlugged(l layout, e endpoint) bool {
	return isNetns(e.netns) && InNetns(l.fabricNetns(), func() error {
		_, err := netlink.LinkByName(e.port)
		return err
	}) == nil
}

// unplugEndpoint takes an endpoint's links away, at once and from both sides.
func unplugEndpoint(l layout, e endpoint) error {
	if !isNetns(l.fabricNetns()) {
		return nil
	}
	return InNetns(l.fabricNetns(), func() error {
		gone := deletePort(e.port)
		for _, link := range e.secondary {
			gone = errors.Join(gone, deletePort(link.port))
		}
		return gone
	})
}

// deletePort removes a link and its peer; no error if the link does not exist.
func deletePort(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return err
	}
	return netlink.LinkDel(link)
}

// addPairs makes two links for each network; it runs in the fabric's namespace.
func addPairs(e endpoint, links []fabricLink) error {
	ns, err := os.Open(netnsPath(e.netns))
	if err != nil {
		return err
	}
	defer ns.Close()
	for _, link := range links {
		if err := addPair(ns, link); err != nil {
			return err
		}
	}
	return nil
}

func addPair(ns *os.File, link fabricLink) error {
	master, err := netlink.LinkByName(link.bridge)
	if err != nil {
		return err
	}
	pair := netlink.NewVeth(netlink.LinkAttrs{Name: link.port, MasterIndex: master.Attrs().Index})
	pair.PeerName, pair.PeerNamespace, pair.PeerHardwareAddr = link.name, netlink.NsFd(int(ns.Fd())), link.mac
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	return netlink.LinkSetUp(pair)
}

// setUp brings lo and the named link up and gives the latter the addresses; it runs in their namespace.
func setUp(name string, ips []netip.Prefix) error {
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
		if err := podlink.DisableTxChecksum(n); err != nil {
			return fmt.Errorf("transmit checksums of %s: %w", n, err)
		}
		for _, p := range ips {
			a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(),
				Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
			if p.Addr().Is6() {
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
