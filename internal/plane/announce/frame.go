package announce

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/ndp"
)

const (
	etherARP  = 0x0806
	etherIPv6 = 0x86dd
	protoICMP = 58
)

// frames are the Ethernet frames that say that ip is at mac, each with its destination. IPv4 gets an announcement in request
// form and one in reply form: some hosts renew their ARP cache on one of them only (RFC 5227 3).
func frames(ip netip.Addr, mac net.HardwareAddr) ([][]byte, error) {
	if len(mac) != 6 {
		return nil, fmt.Errorf("announce %s: %q is no Ethernet address", ip, mac)
	}
	if ip.Is4() {
		return [][]byte{arp(1, ip, mac), arp(2, ip, mac)}, nil
	}
	na, err := advertisement(ip, mac)
	return [][]byte{na}, err
}

var (
	broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	allNodes  = netip.MustParseAddr("ff02::1")
	// allNodesMAC is allNodes on Ethernet (RFC 2464 7).
	allNodesMAC = net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}
)

// arp is an ARP packet (RFC 826) in which sender and target address are both ip. A request leaves the target's hardware
// address zero (RFC 5227 2.3), a reply repeats the sender's.
func arp(operation uint16, ip netip.Addr, mac net.HardwareAddr) []byte {
	b := append([]byte{}, broadcast...)
	b = append(b, mac...)
	b = binary.BigEndian.AppendUint16(b, etherARP)
	b = append(b, 0, 1, 8, 0, 6, 4) // Ethernet, IPv4, lengths of their addresses
	b = binary.BigEndian.AppendUint16(b, operation)
	b = append(append(b, mac...), ip.AsSlice()...)
	target := make(net.HardwareAddr, 6)
	if operation == 2 {
		target = mac
	}
	return append(append(b, target...), ip.AsSlice()...)
}

// advertisement is an unsolicited NA with the override flag, from ip to all nodes (RFC 4861 4.4). Hop limit 255 is what
// receivers insist on.
func advertisement(ip netip.Addr, mac net.HardwareAddr) ([]byte, error) {
	icmp, err := ndp.MarshalMessageChecksum(&ndp.NeighborAdvertisement{Override: true, TargetAddress: ip,
		Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: mac}}}, ip, allNodes)
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", ip, err)
	}
	b := append(append([]byte{}, allNodesMAC...), mac...)
	b = binary.BigEndian.AppendUint16(b, etherIPv6)
	b = append(b, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(icmp)))
	b = append(b, protoICMP, 255)
	b = append(append(b, ip.AsSlice()...), allNodes.AsSlice()...)
	return append(b, icmp...), nil
}
