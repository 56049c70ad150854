package ovs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Uplink is a node's network device that becomes a port of its gateway bridge.
type Uplink struct {
	Bridge       string // breth0; the host's addresses move to its port of that name
	Device       string // eth0
	DatapathType string // as Bridge.DatapathType
}

// MoveUplink makes u.Bridge, puts the device on it, and moves the device's addresses and main-table routes to the
// bridge's own port. baseFlows is called when both ports are there and before anything moves: the bridge is secure and
// forwards nothing without flows. Every step adds before the next one removes and looks at what is there, so MoveUplink
// may be interrupted anywhere and called again, also after a reboot, when the bridge is in the database and the
// addresses are on the device. IPv6 link-local addresses stay where they are.
//
// Who gave the device an address for a time, by DHCP or by router advertisements (RA), does not renew it on the bridge:
// it is there for good. An IPv6 default route that the kernel has from RA is kept by RA.
func (d *DB) MoveUplink(ctx context.Context, u Uplink, baseFlows func(context.Context) error) error {
	device, err := netlink.LinkByName(u.Device)
	if err != nil {
		return fmt.Errorf("find uplink %s: %w", u.Device, err)
	}
	mac := device.Attrs().HardwareAddr.String()
	if err := d.EnsureBridge(ctx, Bridge{Name: u.Bridge, DatapathType: u.DatapathType, FailMode: "secure",
		HWAddr: mac}); err != nil {
		return err
	}
	if err := d.ensureDevice(ctx, u); err != nil {
		return err
	}
	if err := d.awaitPort(ctx, u.Device); err != nil {
		return err
	}
	if err := baseFlows(ctx); err != nil {
		return fmt.Errorf("install base flows of %s: %w", u.Bridge, err)
	}
	local, err := netlink.LinkByName(u.Bridge)
	if err != nil {
		return fmt.Errorf("find the port of bridge %s: %w", u.Bridge, err)
	}
	if err := netlink.LinkSetUp(local); err != nil {
		return fmt.Errorf("set %s up: %w", u.Bridge, err)
	}
	return move(device, local)
}

// ensureDevice puts the device on the bridge. It is not marked as a port of the plan: it outlives every plan.
func (d *DB) ensureDevice(ctx context.Context, u Uplink) error {
	d.writes.Lock()
	defer d.writes.Unlock()
	t, err := d.topology(ctx)
	if err != nil {
		return err
	}
	if at, ok := t.ports[u.Device]; ok {
		if at.bridge != u.Bridge {
			return fmt.Errorf("uplink %s is on bridge %s: take it off with `ovs-vsctl del-port %s`", u.Device,
				at.bridge, u.Device)
		}
		return nil
	}
	return d.insertPort(ctx, t.bridges[u.Bridge], iface{Name: u.Device}, nil)
}

func (d *DB) awaitPort(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := d.await(ctx, func() bool {
		_, ok := d.OFPort(name)
		return ok
	})
	if err != nil {
		return fmt.Errorf("wait for port %s, see Interface.error in `ovs-vsctl list interface %s`: %w", name, name, err)
	}
	return nil
}

// move adds addresses, then points routes to the new device, then removes the old addresses: the kernel keeps a route
// as long as its device and its preferred source are there.
func move(from, to netlink.Link) error {
	addrs, err := globalAddrs(from)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if err := addAddr(to, a); err != nil {
			return err
		}
	}
	if err := moveRoutes(from, to); err != nil {
		return err
	}
	for _, a := range addrs {
		if err := netlink.AddrDel(from, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove %s from %s: %w", a.IPNet, from.Attrs().Name, err)
		}
	}
	return nil
}

func globalAddrs(link netlink.Link) ([]netlink.Addr, error) {
	addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", link.Attrs().Name, err)
	}
	return slices.DeleteFunc(addrs, func(a netlink.Addr) bool {
		return a.IP.IsLinkLocalUnicast() && a.IP.To4() == nil
	}), nil
}

func addAddr(link netlink.Link, a netlink.Addr) error {
	a.Label, a.LinkIndex = "", link.Attrs().Index // an IPv4 label has to begin with the device's name
	a.Flags &^= unix.IFA_F_PERMANENT | unix.IFA_F_TENTATIVE
	if a.IP.To4() == nil {
		a.Flags |= unix.IFA_F_NODAD
	}
	if temporary := a.IP.To4() == nil && a.Flags&unix.IFA_F_TEMPORARY != 0; !temporary {
		lastFor(&a)
	}
	if err := netlink.AddrReplace(link, &a); err != nil {
		return fmt.Errorf("add %s to %s: %w", a.IPNet, link.Attrs().Name, err)
	}
	return nil
}

// lastFor gives an address no end. A deprecated one stays so (RFC 4862 5.5.4).
func lastFor(a *netlink.Addr) {
	const forever = math.MaxUint32 // INFINITY_LIFE_TIME, Linux
	if deprecated := a.ValidLft > 0 && a.PreferedLft == 0; !deprecated {
		a.PreferedLft = forever
	}
	a.ValidLft = forever
}

// moveRoutes leaves out the kernel's own routes, which come and go with the addresses.
func moveRoutes(from, to netlink.Link) error {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN},
			netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("list routes of %s: %w", from.Attrs().Name, err)
		}
		// On-link routes first: gateways are reached through them.
		slices.SortStableFunc(routes, func(a, b netlink.Route) int { return viaOrder(a) - viaOrder(b) })
		for _, r := range routes {
			if r.Protocol == unix.RTPROT_KERNEL || !redirect(&r, from, to) {
				continue
			}
			if err := keepExpiry(&r, from, to); err != nil {
				return err
			}
			if err := netlink.RouteReplace(&r); err != nil {
				return fmt.Errorf("move route %s to %s: %w", r, to.Attrs().Name, err)
			}
		}
	}
	return nil
}

// redirect has those next hops of a route lead by the new device that led by the old one, and says whether one did.
func redirect(r *netlink.Route, from, to netlink.Link) (moved bool) {
	const dead = unix.RTNH_F_LINKDOWN | unix.RTNH_F_DEAD
	for _, hop := range r.MultiPath {
		if hop.Flags &^= dead; hop.LinkIndex == from.Attrs().Index {
			hop.LinkIndex, moved = to.Attrs().Index, true
		}
	}
	if r.Flags &^= dead; len(r.MultiPath) == 0 && r.LinkIndex == from.Attrs().Index {
		r.LinkIndex, moved = to.Attrs().Index, true
	}
	return moved
}

// keepExpiry: a route that the kernel has from RA on the old device ends as it would have, unless RA on the new one
// renews it. A kernel that forwards takes RA only with accept_ra=2 (ip-sysctl, Linux). Any other route has no end on
// the new device, where nobody renews it.
func keepExpiry(r *netlink.Route, from, to netlink.Link) error {
	accepted, err := os.ReadFile(acceptRA(from))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
		return fmt.Errorf("does %s take router advertisements: %w", from.Attrs().Name, err)
	}
	if r.Protocol != unix.RTPROT_RA || strings.TrimSpace(string(accepted)) == "0" {
		r.Expires = 0
		return nil
	}
	if err := os.WriteFile(acceptRA(to), []byte("2"), 0o644); err != nil {
		return fmt.Errorf("have %s take router advertisements: %w", to.Attrs().Name, err)
	}
	return nil
}

func acceptRA(link netlink.Link) string {
	return "/proc/sys/net/ipv6/conf/" + link.Attrs().Name + "/accept_ra"
}

func viaOrder(r netlink.Route) int {
	if r.Gw == nil || r.Gw.Equal(net.IPv4zero) {
		return 0
	}
	return 1
}
