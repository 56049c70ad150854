package planetest

import (
	"encoding/binary"
	"net/netip"
)

// IPPacket puts a header before a payload (RFC 791, RFC 8200).
func IPPacket(from, to netip.Addr, proto byte, payload []byte) []byte {
	if from.Is6() {
		p := binary.BigEndian.AppendUint16([]byte{6 << 4, 0, 0, 0}, uint16(len(payload)))
		p = append(append(append(p, proto, 64), from.AsSlice()...), to.AsSlice()...)
		return append(p, payload...)
	}
	p := binary.BigEndian.AppendUint16([]byte{4<<4 | 5, 0}, uint16(20+len(payload)))
	p = append(append(append(p, 0, 0, 0, 0, 64, proto, 0, 0), from.AsSlice()...), to.AsSlice()...)
	sum := uint32(0)
	for i := 0; i < len(p); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum+sum>>16))
	return append(p, payload...)
}
