package e2e

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mdlayher/packet"
)

// sighting is one datagram of a sender, as it was on its way to a host outside.
type sighting struct {
	at       time.Time
	pod      string // "namespace/name"
	kind     string // new or old, see sender
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
		if s.conn, err = packet.Listen(link, packet.Raw, allProtocols, nil); err != nil {
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

const allProtocols = 0x0003 // ETH_P_ALL

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
	if len(words) != 3 || words[0] != "egret-e2e" {
		return s, false
	}
	s.pod, s.kind = words[1], words[2]
	return s, true
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

// flow is what a gap is measured in: a pod's datagrams to one address.
type flow struct {
	pod string
	dst netip.Addr
}

// longestGapBetween is the longest time that a pod's new connections to one address did not arrive, and whose.
func (s *capture) longestGapBetween(begin, end time.Time) (gap time.Duration, of flow) {
	last := map[flow]time.Time{}
	for _, x := range s.since(begin) {
		f := flow{x.pod, x.dst}
		if before, ok := last[f]; ok && x.kind == "new" && x.at.Before(end) && x.at.Sub(before) > gap {
			gap, of = x.at.Sub(before), f
		}
		if x.kind == "new" {
			last[f] = x.at
		}
	}
	return gap, of
}

func (s *capture) longestGap() time.Duration {
	gap, _ := s.longestGapBetween(time.Time{}, time.Now())
	return gap.Round(time.Millisecond)
}

// flowing waits until every one of these pods of a namespace was seen at every address outside, after a time.
func (s *capture) flowing(c *cluster, n *namespace, pods []string, after time.Time, limit time.Duration) {
	s.t.Helper()
	within(s.t, limit, func() error {
		seen := map[flow]int{}
		for _, x := range s.since(after) {
			seen[flow{x.pod, x.dst}]++
		}
		for _, p := range pods {
			for _, h := range c.hosts {
				for _, ip := range h.IPs {
					if f := (flow{n.name + "/" + p, ip}); seen[f] < 5 {
						return fmt.Errorf("%d datagrams of pod %s to %s", seen[f], f.pod, f.dst)
					}
				}
			}
		}
		return nil
	})
}
