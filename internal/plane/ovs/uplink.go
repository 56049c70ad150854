package ovs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

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
// A DHCP client, or a router by its advertisements (RA), that gave the device an address for a time does not renew it
// on the bridge: the address stays for good. An IPv6 default route that the kernel has from RA is kept by RA.
func (d *DB) MoveUplink(ctx context.Context, u Uplink, baseFlows func(context.Context) error) error {
	device, err := netlink.LinkByName(u.Device)
	if err != nil {
		return fmt.Errorf("find uplink %s: %w", u.Device, err)
	}
	b := Bridge{Name: u.Bridge, DatapathType: u.DatapathType, FailMode: "secure",
		HWAddr: device.Attrs().HardwareAddr.String()}
	if err := d.ensureWithAddrs(ctx, b); err != nil {
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
	if err := keepTakingRA(device, local); err != nil {
		return err
	}
	return moveConfig(device, local)
}

// FollowUplink gives a bridge the hardware address that its uplink has by now, and takes from the uplink what it has
// been given again: addresses that the bridge has, and main-table routes. All else of the bridge's own port stays.
func (d *DB) FollowUplink(ctx context.Context, u Uplink) error {
	device, err := netlink.LinkByName(u.Device)
	if err != nil {
		return fmt.Errorf("find uplink %s: %w", u.Device, err)
	}
	err = d.ensureWithAddrs(ctx, Bridge{Name: u.Bridge, HWAddr: device.Attrs().HardwareAddr.String()})
	if err != nil {
		return err
	}
	local, err := netlink.LinkByName(u.Bridge)
	if err != nil {
		return fmt.Errorf("find the port of bridge %s: %w", u.Bridge, err)
	}
	return takeBack(device, local)
}

// ensureWithAddrs is EnsureBridge for a bridge whose own port may have addresses: with the datapath in userspace
// ovs-vswitchd takes the port down to change its hardware address, which costs it its routes and IPv6 addresses.
func (d *DB) ensureWithAddrs(ctx context.Context, b Bridge) error {
	local, err := netlink.LinkByName(b.Name)
	if _, none := errors.AsType[netlink.LinkNotFoundError](err); none {
		return d.EnsureBridge(ctx, b)
	}
	if err != nil {
		return fmt.Errorf("find the port of bridge %s: %w", b.Name, err)
	}
	addrs, err := globalAddrs(local)
	if err != nil {
		return err
	}
	routes, err := mainRoutes(local)
	if err != nil {
		return err
	}
	if err := d.EnsureBridge(ctx, b); err != nil || local.Attrs().HardwareAddr.String() == b.HWAddr {
		return err
	}
	return restoreLink(local, addrs, routes)
}

// restoreLink gives a link back what it had and has no longer. IPv4 addresses outlive a link that is taken down: one
// that is gone was taken away meanwhile by whom it belongs to, and its routes went with it. Of IPv6 addresses that
// cannot be told: the kernel asks about one that may float between machines before it uses it again.
func restoreLink(link netlink.Link, addrs []netlink.Addr, routes []netlink.Route) error {
	now, err := globalAddrs(link)
	if err != nil {
		return err
	}
	there := func(ip net.IP) bool {
		return slices.ContainsFunc(now, func(n netlink.Addr) bool { return n.IP.Equal(ip) })
	}
	var errs []error
	for _, a := range addrs {
		if a.IP.To4() != nil || there(a.IP) || isManaged(a) {
			continue
		}
		now = append(now, a)
		errs = append(errs, addAddr(link, a, mayFloat(a)))
	}
	for _, r := range routes {
		if r.Src != nil && !there(r.Src) {
			continue
		}
		redirectNextHops(&r, link, link)
		if err := netlink.RouteReplace(&r); err != nil {
			errs = append(errs, fmt.Errorf("give %s back the route %s: %w", link.Attrs().Name, r, err))
		}
	}
	return errors.Join(errs...)
}

// mayFloat says whether an IPv6 address may be one that moves between machines.
func mayFloat(a netlink.Addr) bool {
	length, _ := a.Mask.Size()
	return length == 128
}

// isManaged says whether somebody sees to it that an IPv6 address is where it belongs, and notices that it has gone:
// keepalived adds its addresses as deprecated ones.
func isManaged(a netlink.Addr) bool { return mayFloat(a) && a.Flags&unix.IFA_F_DEPRECATED != 0 }

// ensureDevice puts the device on the bridge. It is not marked as a port of the plan: it outlives every plan.
func (d *DB) ensureDevice(ctx context.Context, u Uplink) error {
	d.writes.Lock()
	defer d.writes.Unlock()
	t, err := d.readTopology(ctx)
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
	err := d.awaitCondition(ctx, func() bool {
		_, ok := d.OFPort(name)
		return ok
	})
	if err != nil {
		return fmt.Errorf("wait for port %s, see Interface.error in `ovs-vsctl list interface %s`: %w", name, name, err)
	}
	return nil
}
