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
	flowLabel = 1<<20 - 1 // RFC 8200 3
)

// announcementFrames are the Ethernet frames that say that ip is at mac, each with its destination. IPv4 gets an
// announcement in request form and one in reply form: some hosts renew their ARP cache on one of them only (RFC 5227
// 3). No two announcements are alike, which plan.ARPAnew and NDAnew are for: the request has a nonce where receivers do
// not look (the target's hardware address, RFC 826), and the advertisement's flow label is one (RFC 6437 2).
func announcementFrames(ip netip.Addr, mac net.HardwareAddr, nonce uint32) ([][]byte, error) {
	if len(mac) != 6 {
		return nil, fmt.Errorf("announce %s: %q is no Ethernet address", ip, mac)
	}
	if ip.Is4() {
		target := binary.BigEndian.AppendUint32([]byte{0, 0}, nonce)
		return [][]byte{arpPacket(1, ip, ip, mac, target), arpPacket(2, ip, ip, mac, mac)}, nil
	}
	na, err := unsolicitedNA(ip, mac, nonce)
	return [][]byte{na}, err
}

var (
	broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	allNodes  = netip.MustParseAddr("ff02::1")
)

// probeFrames are the frames that ask who has ip: an ARP request from nobody (RFC 5227 2.1.1), or the neighbor
// solicitation of duplicate address detection (RFC 4862 5.4.2).
func probeFrames(ip netip.Addr, mac net.HardwareAddr) ([][]byte, error) {
	if len(mac) != 6 {
		return nil, fmt.Errorf("ask for %s: %q is no Ethernet address", ip, mac)
	}
	if ip.Is4() {
		return [][]byte{arpPacket(1, netip.IPv4Unspecified(), ip, mac, make(net.HardwareAddr, 6))}, nil
	}
	group, err := ndp.SolicitedNodeMulticast(ip)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", ip, err)
	}
	ns, err := icmpFrame(&ndp.NeighborSolicitation{TargetAddress: ip}, netip.IPv6Unspecified(), group, mac, 0)
	return [][]byte{ns}, err
}

// arpPacket is an ARP packet (RFC 826) of sender, at mac, about an address at target.
func arpPacket(operation uint16, sender, about netip.Addr, mac, target net.HardwareAddr) []byte {
	b := append([]byte{}, broadcast...)
	b = append(b, mac...)
	b = binary.BigEndian.AppendUint16(b, etherARP)
	b = append(b, 0, 1, 8, 0, 6, 4) // Ethernet, IPv4, lengths of their addresses
	b = binary.BigEndian.AppendUint16(b, operation)
	b = append(append(b, mac...), sender.AsSlice()...)
	return append(append(b, target...), about.AsSlice()...)
}

// unsolicitedNA is an unsolicited NA with the override flag, from ip to all nodes (RFC 4861 4.4).
func unsolicitedNA(ip netip.Addr, mac net.HardwareAddr, nonce uint32) ([]byte, error) {
	return icmpFrame(&ndp.NeighborAdvertisement{Override: true, TargetAddress: ip,
		Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: mac}}}, ip, allNodes, mac,
		nonce&flowLabel)
}

// icmpFrame is a frame with a message of neighbor discovery to a multicast address (RFC 2464 7), of a flow label. Hop
// limit 255 is what receivers insist on.
func icmpFrame(m ndp.Message, src, group netip.Addr, mac net.HardwareAddr, label uint32) ([]byte, error) {
	body, err := ndp.MarshalMessageChecksum(m, src, group)
	if err != nil {
		return nil, fmt.Errorf("neighbor discovery from %s: %w", src, err)
	}
	to := group.As16()
	b := append(append([]byte{0x33, 0x33}, to[12:]...), mac...)
	b = binary.BigEndian.AppendUint16(b, etherIPv6)
	b = binary.BigEndian.AppendUint32(b, 6<<28|label)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	b = append(b, protoICMP, 255)
	b = append(append(b, src.AsSlice()...), group.AsSlice()...)
	return append(b, body...), nil
}
