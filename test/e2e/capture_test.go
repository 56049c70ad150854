package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// sighting is one datagram of a sender, as it was on its way to a host outside.
type sighting struct {
	at       time.Time
	pod      string // "namespace/name"
	kind     string // new or old, see sender
	number   int
	src, dst netip.Addr
}

// capture sees every datagram that senders' pods get out to hosts outside.
type capture struct {
	t    *testing.T
	conn *packet.Conn
	mu   sync.Mutex
	all  []sighting
}

// capture listens where all packets of the primary network pass, from now until the test ends.
func (c *cluster) capture(t *testing.T) *capture {
	t.Helper()
	for _, h := range c.hosts {
		swallowIn(t, h.Name, sinkPort)
	}
	s := &capture{t: t}
	err := inNetns(c.FabricNetns(), func() error {
		link, err := net.InterfaceByName(c.FabricBridge())
		if err != nil {
			return err
		}
		filter, err := bpf.Assemble(toSinks)
		if err != nil {
			return err
		}
		if s.conn, err = packet.Listen(link, packet.Raw, allProtocols, &packet.Config{Filter: filter}); err != nil {
			return err
		}
		if err := deepen(s.conn); err != nil {
			return err
		}
		return s.conn.SetPromiscuous(true) // a bridge hands up what it forwards only then
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.read() }()
	t.Cleanup(func() { s.conn.Close(); <-done })
	return s
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
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: sinkPort, SkipTrue: 1},
	bpf.RetConstant{Val: 2048},
	bpf.RetConstant{Val: 0},
}

func (s *capture) read() {
	for frame := make([]byte, 2048); ; {
		n, _, err := s.conn.ReadFrom(frame)
		if err != nil {
			return
		}
		if seen, ok := parse(frame[:n]); ok {
			seen.at = time.Now()
			s.mu.Lock()
			s.all = append(s.all, seen)
			s.mu.Unlock()
		}
	}
}

// parse reads an Ethernet frame with a sender's datagram in it. What is inside a tunnel is none.
func parse(frame []byte) (sighting, bool) {
	const ethernet, udp = 14, 17
	var s sighting
	var segment []byte
	switch {
	case len(frame) > ethernet+28 && binary.BigEndian.Uint16(frame[12:]) == 0x0800 && frame[ethernet+9] == udp:
		ip := frame[ethernet:]
		s.src, s.dst = netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:]))
		segment = ip[int(ip[0]&0xf)*4:]
	case len(frame) > ethernet+48 && binary.BigEndian.Uint16(frame[12:]) == 0x86dd && frame[ethernet+6] == udp:
		ip := frame[ethernet:]
		s.src, s.dst = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
		segment = ip[40:]
	}
	if len(segment) < 8 || binary.BigEndian.Uint16(segment[2:]) != sinkPort {
		return s, false
	}
	words := strings.Fields(string(segment[8:]))
	if len(words) != 4 || words[0] != "egret-e2e" {
		return s, false
	}
	var err error
	s.pod, s.kind = words[1], words[2]
	s.number, err = strconv.Atoi(words[3])
	return s, err == nil
}

// since are the sightings after a time, in their order.
func (s *capture) since(begin time.Time) []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.all, begin, func(x sighting, t time.Time) int { return x.at.Compare(t) })
	return slices.Clone(s.all[i:])
}

// wrong counts the datagrams of a namespace's pods by pod and source, where that is none of want.
func (s *capture) wrong(n *namespace, want []netip.Addr) map[string]int {
	out := map[string]int{}
	for _, x := range s.since(time.Time{}) {
		if strings.HasPrefix(x.pod, n.name+"/") && !slices.Contains(want, x.src) {
			out[x.pod+" as "+x.src.String()]++
		}
	}
	return out
}

// onlyFrom says that nothing was seen of a namespace's pods with another source than these, and that nothing was missed.
func (s *capture) onlyFrom(n *namespace, want []netip.Addr) {
	s.t.Helper()
	if wrong := s.wrong(n, want); len(wrong) > 0 {
		s.t.Errorf("datagrams with a wrong source: %v; want %v", wrong, want)
	}
	if len(s.since(time.Time{})) == 0 {
		s.t.Error("the capture saw no datagram at all")
	}
	s.missedNothing()
}

func (s *capture) missedNothing() {
	s.t.Helper()
	stats, err := s.conn.Stats()
	if err != nil {
		s.t.Fatal(err)
	}
	if stats.Drops > 0 {
		s.t.Errorf("the capture missed %d of %d frames", stats.Drops, stats.Packets)
	}
}

// flow is what gaps and losses are measured in: a pod's datagrams of a kind to one address.
type flow struct {
	pod, kind string
	dst       netip.Addr
}

// loss is what did not arrive in a time.
type loss struct {
	gap   time.Duration // the longest between two datagrams of a flow
	of    flow          // the one with that gap
	total int           // datagrams of all flows that were sent between two that arrived
}

func (l loss) String() string {
	return fmt.Sprintf("%s without %s connections of %s to %s; %d datagrams lost in all", l.gap.Round(time.Millisecond), l.of.kind, l.of.pod, l.of.dst, l.total)
}

// lost looks at the sightings after a time. What was sent before the first of a flow, or after its last, is not counted.
func (s *capture) lost(begin time.Time) loss {
	var l loss
	last := map[flow]sighting{}
	for _, x := range s.since(begin) {
		f := flow{x.pod, x.kind, x.dst}
		before, ok := last[f]
		if last[f] = x; !ok || x.number <= before.number { // a pod that started anew counts anew
			continue
		}
		l.total += x.number - before.number - 1
		if gap := x.at.Sub(before.at); gap > l.gap {
			l.gap, l.of = gap, f
		}
	}
	return l
}

// flowing waits until every one of these pods of a namespace was seen at every address outside, after a time.
func (s *capture) flowing(c *cluster, n *namespace, pods []string, after time.Time, limit time.Duration) {
	s.t.Helper()
	within(s.t, limit, func() error {
		seen := map[flow]int{}
		for _, x := range s.since(after) {
			seen[flow{x.pod, x.kind, x.dst}]++
		}
		for _, p := range pods {
			for _, h := range c.hosts {
				for _, ip := range h.IPs {
					if f := (flow{n.name + "/" + p, "new", ip}); seen[f] < 5 {
						return fmt.Errorf("%d datagrams of pod %s to %s", seen[f], f.pod, f.dst)
					}
				}
			}
		}
		return nil
	})
}
