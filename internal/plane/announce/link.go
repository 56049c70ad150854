package announce

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"

	"github.com/mdlayher/packet"

	"github.com/egret-net/egret/internal/plan"
)

// Sender puts frames on the link of an announcement.
type Sender interface {
	// Send says that the address is here.
	Send(a plan.Announcement) error
	// Probe asks who has it, without saying so.
	Probe(a plan.Announcement) error
}

// Links sends on the devices of this network namespace.
type Links struct{}

// Send announces.
func (Links) Send(a plan.Announcement) error {
	return sendFrames(a, func(ip netip.Addr, mac net.HardwareAddr) ([][]byte, error) {
		return announcementFrames(ip, mac, rand.Uint32())
	})
}

// Probe asks.
func (Links) Probe(a plan.Announcement) error { return sendFrames(a, probeFrames) }

// sendFrames opens a packet socket for each announcement: a device may be a new one of the old name.
func sendFrames(a plan.Announcement, frames func(netip.Addr, net.HardwareAddr) ([][]byte, error)) error {
	mac, err := net.ParseMAC(a.MAC)
	if err != nil {
		return fmt.Errorf("announce %s: %w", a.IP, err)
	}
	out, err := frames(a.IP, mac)
	if err != nil {
		return err
	}
	dev, err := net.InterfaceByName(a.Dev)
	if err != nil {
		return fmt.Errorf("announce %s on %s: %w", a.IP, a.Dev, err)
	}
	conn, err := packet.Listen(dev, packet.Raw, 0, nil) // protocol 0: receives nothing
	if err != nil {
		return fmt.Errorf("announce %s on %s: %w", a.IP, a.Dev, err)
	}
	// The kernel lets every CPU go once round before it gives a packet socket up (synchronize_net): tens of
	// milliseconds that nobody has to wait for, least of all the pods' nodes, which are told that the address is held
	// when this is done.
	defer func() { go conn.Close() }()
	for _, frame := range out {
		if _, err := conn.WriteTo(frame, &packet.Addr{HardwareAddr: net.HardwareAddr(frame[:6])}); err != nil {
			return fmt.Errorf("announce %s on %s: %w", a.IP, a.Dev, err)
		}
	}
	return nil
}
