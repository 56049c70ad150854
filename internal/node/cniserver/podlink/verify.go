package podlink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
)

// Verify compares what is there with the specification. The error says what differs and what to do.
func Verify(s Spec) error {
	host, err := findLink(s.HostIface)
	if err != nil {
		return err
	}
	if host == nil {
		return fmt.Errorf("veth %s is not on the node: delete the pod", s.HostIface)
	}
	if host.Attrs().Flags&net.FlagUp == 0 {
		return fmt.Errorf("veth %s on the node is down: set it up", s.HostIface)
	}
	return ns.WithNetNSPath(s.NetNS, func(ns.NetNS) error { return verifyPod(s, host.Attrs().ParentIndex) })
}

func verifyPod(s Spec, index int) error {
	link, err := netlink.LinkByName(s.IfName)
	if err != nil {
		return fmt.Errorf("find %s in the pod: %w", s.IfName, err)
	}
	have := link.Attrs()
	var wrong []error
	if have.Index != index {
		wrong = append(wrong, fmt.Errorf("it is not the other end of %s", s.HostIface))
	}
	if have.HardwareAddr.String() != s.MAC.String() {
		wrong = append(wrong, fmt.Errorf("its MAC is %s, want %s", have.HardwareAddr, s.MAC))
	}
	if have.Flags&net.FlagUp == 0 {
		wrong = append(wrong, errors.New("it is down"))
	}
	wrong = append(wrong, verifyAddrs(s, link), verifyRoutes(s, link), verifyChecksum(s))
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("interface %s in the pod was changed, delete the pod: %w", s.IfName, err)
	}
	return nil
}

func verifyAddrs(s Spec, link netlink.Link) error {
	have, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list its addresses: %w", err)
	}
	for _, want := range s.Addrs {
		if !slices.ContainsFunc(have, func(a netlink.Addr) bool { return a.IPNet.String() == want.String() }) {
			return fmt.Errorf("address %s is missing", want)
		}
	}
	return nil
}

func verifyRoutes(s Spec, link netlink.Link) error {
	have, err := netlink.RouteList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list its routes: %w", err)
	}
	for _, want := range s.allRoutes() {
		isWanted := func(r netlink.Route) bool {
			via, ok := netip.AddrFromSlice(r.Gw)
			toAll := want.To.Bits() == 0 && r.Dst == nil
			return ok && via.Unmap() == want.Via && (toAll || r.Dst != nil && r.Dst.String() == want.To.String())
		}
		if !slices.ContainsFunc(have, isWanted) {
			return fmt.Errorf("the route to %s via %s is missing", want.To, want.Via)
		}
	}
	return nil
}

func verifyChecksum(s Spec) error {
	if !s.ChecksumInSoftware {
		return nil
	}
	on, err := txChecksum(s.IfName)
	if err != nil {
		return fmt.Errorf("read its checksum setting: %w", err)
	}
	if on {
		return errors.New("it leaves checksums to a device")
	}
	return nil
}

// PeerName is the name in that namespace of the other end of hostIface; empty when it is not there.
func PeerName(hostIface, netns string) (string, error) {
	host, err := findLink(hostIface)
	if err != nil || host == nil {
		return "", err
	}
	var name string
	err = ns.WithNetNSPath(netns, func(ns.NetNS) error {
		link, err := netlink.LinkByIndex(host.Attrs().ParentIndex)
		if err == nil && link.Attrs().ParentIndex == host.Attrs().Index {
			name = link.Attrs().Name
		}
		return nil
	})
	return name, err
}
