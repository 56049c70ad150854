package traffic

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/sandbox"
)

// Answer is what one machine said to the question who has an address.
type Answer struct {
	At  time.Time
	IP  netip.Addr
	MAC string // that it gave
}

// Asking is a host outside that asks for addresses by ARP and Neighbor Discovery, all the time.
type Asking struct {
	conn  *packet.Conn
	own   net.HardwareAddr
	from  []netip.Addr
	about []netip.Addr
	stop  chan struct{}
	tasks sync.WaitGroup
	mu    sync.Mutex
	all   []Answer
}

// Ask has a host outside ask for each address every so often, until Close.
func Ask(host sandbox.Member, about []netip.Addr, every time.Duration) (*Asking, error) {
	a := &Asking{from: host.IPs, about: about, stop: make(chan struct{})}
	err := sandbox.InNetns(host.Name, func() error {
		dev, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		a.own = dev.HardwareAddr
		a.conn, err = packet.Listen(dev, packet.Raw, unix.ETH_P_ALL, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	a.tasks.Go(a.read)
	a.tasks.Go(func() { a.ask(every) })
	return a, nil
}

// Close ends the questions.
func (a *Asking) Close() {
	close(a.stop)
	_ = a.conn.Close()
	a.tasks.Wait()
}

// Since are the answers after a time, in their order.
func (a *Asking) Since(begin time.Time) []Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, _ := slices.BinarySearchFunc(a.all, begin, func(x Answer, t time.Time) int { return x.At.Compare(t) })
	return slices.Clone(a.all[i:])
}

// Forget drops the answers so far.
func (a *Asking) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = nil
}

// ask sends questions; one that cannot be sent is one that nobody answers.
func (a *Asking) ask(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-tick.C:
		}
		for _, ip := range a.about {
			for _, src := range a.from {
				if src.Is4() == ip.Is4() {
					frame := question(a.own, src, ip)
					_, _ = a.conn.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]})
				}
			}
		}
	}
}

// question is an ARP request or a neighbor solicitation.
func question(own net.HardwareAddr, src, about netip.Addr) []byte {
	if about.Is4() {
		b := append(bytes.Repeat([]byte{0xff}, 6), own...)
		b = append(b, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1)
		b = append(append(b, own...), src.AsSlice()...)
		return append(append(b, make([]byte, 6)...), about.AsSlice()...)
	}
	group, _ := ndp.SolicitedNodeMulticast(about)
	body, _ := ndp.MarshalMessageChecksum(&ndp.NeighborSolicitation{TargetAddress: about,
		Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: own}}}, src, group)
	to := group.As16()
	b := append(append([]byte{0x33, 0x33}, to[12:]...), own...)
	b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	b = append(b, 58, 255)
	b = append(append(b, src.AsSlice()...), group.AsSlice()...)
	return append(b, body...)
}

func (a *Asking) read() {
	for frame := make([]byte, 2048); ; {
		n, _, err := a.conn.ReadFrom(frame)
		if err != nil {
			return
		}
		for _, ip := range a.about {
			if mac, is := answer(frame[:n], ip); is {
				a.mu.Lock()
				a.all = append(a.all, Answer{time.Now(), ip, mac})
				a.mu.Unlock()
			}
		}
	}
}

// answer is the hardware address that a frame gives for an address.
func answer(frame []byte, ip netip.Addr) (mac string, is bool) {
	const arpReply, advertisement = 2, 136
	switch {
	case len(frame) >= 42 && binary.BigEndian.Uint16(frame[12:]) == 0x0806 && frame[21] == arpReply &&
		bytes.Equal(frame[28:32], ip.AsSlice()):
		return net.HardwareAddr(frame[22:28]).String(), true
	case len(frame) >= 78 && binary.BigEndian.Uint16(frame[12:]) == 0x86dd && frame[20] == 58 &&
		frame[54] == advertisement && bytes.Equal(frame[62:78], ip.AsSlice()):
		return net.HardwareAddr(frame[6:12]).String(), true
	}
	return "", false
}
