package traffic

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/mdlayher/packet"
)

// ListenAll receives all frames that pass a bridge of this thread's network namespace.
func ListenAll(bridge string) (*packet.Conn, error) {
	link, err := net.InterfaceByName(bridge)
	if err != nil {
		return nil, err
	}
	conn, err := packet.Listen(link, packet.Raw, allProtocols, nil)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetPromiscuous(true)
}

// Ends returns the source and the destination of a frame's IP packet, if it has one.
func Ends(frame []byte) (from, to netip.Addr, is bool) {
	const header, ipv4, ipv6 = 14, 0x0800, 0x86dd
	if len(frame) < header+20 {
		return netip.Addr{}, netip.Addr{}, false
	}
	ip := frame[header:]
	switch kind := binary.BigEndian.Uint16(frame[12:]); {
	case kind == ipv4:
		return netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20])), true
	case kind == ipv6 && len(ip) >= 40:
		return netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40])), true
	}
	return netip.Addr{}, netip.Addr{}, false
}
