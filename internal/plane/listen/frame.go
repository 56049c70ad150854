package listen

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/bpf"
)

const (
	etherARP      = 0x0806
	etherIPv6     = 0x86dd
	protoICMP     = 58
	advertisement = 136
	// outgoing is PACKET_OUTGOING of linux/if_packet.h: frames that this host sends itself.
	outgoing = 4
	// headers are those of Ethernet and IPv6, up to the ICMP message.
	headers = 14 + 40
)

// filter lets through what comes in as ARP or as a neighbor advertisement.
var filter = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtType},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: outgoing, SkipTrue: 8},
	bpf.LoadAbsolute{Off: 12, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherARP, SkipTrue: 5},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: etherIPv6, SkipTrue: 5},
	bpf.LoadAbsolute{Off: 20, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protoICMP, SkipTrue: 3},
	bpf.LoadAbsolute{Off: headers, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: advertisement, SkipTrue: 1},
	bpf.RetConstant{Val: 256},
	bpf.RetConstant{Val: 0},
}

// parseClaim reads who says in an Ethernet frame that he has which address.
func parseClaim(frame []byte) (Claim, bool) {
	if len(frame) < 14 {
		return Claim{}, false
	}
	switch binary.BigEndian.Uint16(frame[12:]) {
	case etherARP:
		return parseARP(frame[14:])
	case etherIPv6:
		return parseAdvertisement(frame)
	}
	return Claim{}, false
}

// parseARP takes the sender of a request or a reply: he has the address. A probe (RFC 5227 2.1.1) has none.
func parseARP(p []byte) (Claim, bool) {
	if len(p) < 28 || binary.BigEndian.Uint64(p)>>16 != 0x000108000604 {
		return Claim{}, false
	}
	ip := netip.AddrFrom4([4]byte(p[14:18]))
	return Claim{IP: ip, MAC: net.HardwareAddr(p[8:14]).String()}, !ip.IsUnspecified()
}

func parseAdvertisement(frame []byte) (Claim, bool) {
	if len(frame) < headers || frame[20] != protoICMP || frame[21] != 255 { // hop limit: RFC 4861 7.1.2
		return Claim{}, false
	}
	end := min(len(frame), headers+int(binary.BigEndian.Uint16(frame[18:]))) // short frames are padded
	m, err := ndp.ParseMessage(frame[headers:end])
	na, is := m.(*ndp.NeighborAdvertisement)
	if err != nil || !is {
		return Claim{}, false
	}
	c := Claim{IP: na.TargetAddress, MAC: net.HardwareAddr(frame[6:12]).String()}
	for _, o := range na.Options {
		if l, is := o.(*ndp.LinkLayerAddress); is && l.Direction == ndp.Target {
			c.MAC = l.Addr.String()
		}
	}
	return c, true
}
