package traffic

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/sandbox"
)

// Capture sees every datagram that senders' pods get out to hosts outside.
type Capture struct {
	conns []*packet.Conn
	reads sync.WaitGroup
	mu    sync.Mutex
	all   []Sighting
}

// Listen captures where all packets of the primary and of secondary networks pass, until Close.
func Listen(c *sandbox.Cluster) (*Capture, error) {
	bridges := []string{c.FabricBridge()}
	for i := 1; i <= c.Options().SecondaryNetworks; i++ {
		bridges = append(bridges, c.SecondaryBridge(i))
	}
	s := &Capture{}
	for _, b := range bridges {
		err := sandbox.InNetns(c.FabricNetns(), func() error {
			conn, err := listen(b)
			if err == nil {
				s.conns = append(s.conns, conn)
			}
			return err
		})
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("capture on the fabric: %w", err)
		}
		conn := s.conns[len(s.conns)-1]
		s.reads.Go(func() { s.read(conn) })
	}
	return s, nil
}

func listen(bridge string) (*packet.Conn, error) {
	link, err := net.InterfaceByName(bridge)
	if err != nil {
		return nil, err
	}
	filter, err := bpf.Assemble(toSinks)
	if err != nil {
		return nil, err
	}
	conn, err := packet.Listen(link, packet.Raw, allProtocols, &packet.Config{Filter: filter})
	if err != nil {
		return nil, err
	}
	// A bridge hands up what it forwards only when promiscuous.
	return conn, errors.Join(deepen(conn), conn.SetPromiscuous(true))
}

// deepen gives the socket room for seconds of packets: the reader shares two cores with three nodes.
func deepen(conn *packet.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	})
	return errors.Join(err, failed)
}

const allProtocols = 0x0003 // ETH_P_ALL

// toSinks lets through UDP over IPv4 and IPv6 to the port of sinks, as tcpdump -dd would write it.
var toSinks = []bpf.Instruction{
	bpf.LoadAbsolute{Off: 12, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x86dd, SkipTrue: 6},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x0800, SkipTrue: 10},
	bpf.LoadAbsolute{Off: 23, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 17, SkipTrue: 8},
	bpf.LoadMemShift{Off: 14},
	bpf.LoadIndirect{Off: 16, Size: 2},
	bpf.Jump{Skip: 3},
	bpf.LoadAbsolute{Off: 20, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 17, SkipTrue: 3},
	bpf.LoadAbsolute{Off: 56, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: Port, SkipTrue: 1},
	bpf.RetConstant{Val: 2048},
	bpf.RetConstant{Val: 0},
}

func (s *Capture) read(conn *packet.Conn) {
	for frame := make([]byte, 2048); ; {
		n, _, err := conn.ReadFrom(frame)
		if err != nil {
			return
		}
		if seen, ok := parse(frame[:n]); ok {
			s.mu.Lock()
			seen.At = time.Now() // under the lock: all is in order of time
			s.all = append(s.all, seen)
			s.mu.Unlock()
		}
	}
}

// Since are the sightings after a time, in their order.
func (s *Capture) Since(begin time.Time) []Sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.all, begin, func(x Sighting, t time.Time) int { return x.At.Compare(t) })
	return slices.Clone(s.all[i:])
}

// Forget drops what was seen so far: a long measurement sees millions of datagrams.
func (s *Capture) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}

// Complete is nil if no frame was missed since Listen, or since Complete was asked last.
func (s *Capture) Complete() error {
	var errs []error
	for _, conn := range s.conns {
		stats, err := conn.Stats()
		if err == nil && stats.Drops > 0 {
			err = fmt.Errorf("the capture missed %d of %d frames", stats.Drops, stats.Packets)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Close ends the capture.
func (s *Capture) Close() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
	s.reads.Wait()
}
