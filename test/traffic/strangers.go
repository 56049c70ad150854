package traffic

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"github.com/mdlayher/packet"

	"github.com/egret-net/egret/internal/sandbox"
)

// Strangers are machines that nobody has heard of, each with an address of its own.
type Strangers struct {
	From  net.HardwareAddr // of the first; the others' follow
	About netip.Addr       // an IPv6 address that they ask for
	Link  netip.Prefix     // of IPv6 addresses; those of IPv4 are of 198.18.0.0/15 (RFC 2544)
}

// Appear has so many of them show themselves on the link of a host outside, at a rate: each asks for an IPv6 address
// and says by ARP that it has an IPv4 address.
func (s Strangers) Appear(host sandbox.Member, count, perSecond int) error {
	var conn *packet.Conn
	err := sandbox.InNetns(host.Name, func() error {
		dev, err := net.InterfaceByName("eth0")
		if err == nil {
			conn, err = packet.Listen(dev, packet.Raw, 0, nil) // protocol 0: receives nothing
		}
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := range count {
		<-tick.C
		for _, frame := range s.frames(uint32(i)) {
			if _, err := conn.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// frames are what one of them says.
func (s Strangers) frames(number uint32) [][]byte {
	mac := bytes.Clone(s.From)
	binary.BigEndian.PutUint32(mac[2:], binary.BigEndian.Uint32(mac[2:])+number)
	six := s.Link.Addr().As16()
	copy(six[10:], mac)
	four := netip.AddrFrom4([4]byte{198, 18, byte(number >> 8), byte(number)})
	return [][]byte{question(mac, netip.AddrFrom16(six), s.About), reply(mac, four)}
}

// reply is an ARP reply to all that says who has an address.
func reply(own net.HardwareAddr, has netip.Addr) []byte {
	b := question(own, has, has)
	b[21] = 2 // the operation's lower byte
	copy(b[32:38], own)
	return b
}
