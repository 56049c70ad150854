package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
)

const (
	// askEvery is how often a host outside asks who has an address.
	askEvery = 100 * time.Millisecond
	// quiet is how long one must have said nothing to count as one that answers no more.
	quiet = time.Second
	// overlap is how long two machines may both answer for one address: a former holder that Kubernetes cannot reach waits a second for the
	// API server when it hears of another one. The rest is for two busy cores.
	overlap = 4 * time.Second
)

// answers are those to a host's question who has an address, all the time.
type answers struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[netip.Addr]map[string][]time.Time // by the hardware address that answered
}

// asks has a host outside ask for addresses from now until the test ends.
func (c *cluster) asks(t *testing.T, host sandbox.Member, ips []netip.Addr) *answers {
	t.Helper()
	a := &answers{t: t, seen: map[netip.Addr]map[string][]time.Time{}}
	for _, ip := range ips {
		a.seen[ip] = map[string][]time.Time{}
	}
	var conn *packet.Conn
	var own net.HardwareAddr
	err := sandbox.InNetns(host.Name, func() error {
		dev, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		own = dev.HardwareAddr
		conn, err = packet.Listen(dev, packet.Raw, unix.ETH_P_ALL, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); a.read(conn, ips) }()
	t.Cleanup(func() { conn.Close(); <-done })
	go ask(t, conn, own, host.IPs, ips)
	return a
}

// ask sends questions until the test ends.
func ask(t *testing.T, conn *packet.Conn, own net.HardwareAddr, from, about []netip.Addr) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.Context().Done():
			return
		case <-tick.C:
		}
		for _, ip := range about {
			for _, src := range from {
				if src.Is4() == ip.Is4() {
					frame := question(own, src, ip)
					_, _ = conn.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]})
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

func (a *answers) read(conn *packet.Conn, ips []netip.Addr) {
	for frame := make([]byte, 2048); ; {
		n, _, err := conn.ReadFrom(frame)
		if err != nil {
			return
		}
		for _, ip := range ips {
			if mac, is := answer(frame[:n], ip); is {
				a.mu.Lock()
				a.seen[ip][mac] = append(a.seen[ip][mac], time.Now())
				a.mu.Unlock()
			}
		}
	}
}

// answer is the hardware address that a frame gives for an address.
func answer(frame []byte, ip netip.Addr) (mac string, is bool) {
	const arpReply, advertisement = 2, 136
	switch {
	case len(frame) >= 42 && binary.BigEndian.Uint16(frame[12:]) == 0x0806 && frame[21] == arpReply && bytes.Equal(frame[28:32], ip.AsSlice()):
		return net.HardwareAddr(frame[22:28]).String(), true
	case len(frame) >= 78 && binary.BigEndian.Uint16(frame[12:]) == 0x86dd && frame[20] == 58 && frame[54] == advertisement && bytes.Equal(frame[62:78], ip.AsSlice()):
		return net.HardwareAddr(frame[6:12]).String(), true
	}
	return "", false
}

// lately are who answered for an address in the last second.
func (a *answers) lately(ip netip.Addr) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for mac, at := range a.seen[ip] {
		if len(at) > 0 && time.Since(at[len(at)-1]) < quiet {
			out = append(out, mac)
		}
	}
	slices.Sort(out)
	return out
}

// onlyHolders waits until of each address the node that the EgressIP's status names answers, and nobody else.
func (a *answers) onlyHolders(e egressIP) {
	a.t.Helper()
	within(a.t, notReadyTimeout, func() error {
		o, err := e.get()
		if err != nil {
			return err
		}
		for ip, node := range nodesOf(o) {
			want := kube.Node(e.c.node(a.t, node)).UplinkMAC.String()
			if have := a.lately(netip.MustParseAddr(ip)); !slices.Equal(have, []string{want}) {
				return fmt.Errorf("%v answer for %s, want %s of %s alone", have, ip, want, node)
			}
		}
		return nil
	})
}

// neverTwo says that no two machines answered for an address at the same time for longer than overlap.
func (a *answers) neverTwo() {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for ip, by := range a.seen {
		macs := slices.Sorted(maps.Keys(by))
		for i, x := range macs {
			for _, y := range macs[i+1:] {
				both := together(spans(by[x]), spans(by[y]))
				a.t.Logf("%s: %s and %s both answered for %s", ip, x, y, both.Round(10*time.Millisecond))
				if both > overlap {
					a.t.Errorf("%s: %s and %s both answered for %s", ip, x, y, both)
				}
			}
		}
	}
}

// span is a time in which one answered without a pause.
type span struct{ first, last time.Time }

func spans(at []time.Time) []span {
	var out []span
	for _, t := range at {
		if n := len(out); n > 0 && t.Sub(out[n-1].last) < quiet {
			out[n-1].last = t
			continue
		}
		out = append(out, span{t, t})
	}
	return out
}

// together is the longest time that is in a span of each.
func together(a, b []span) time.Duration {
	var longest time.Duration
	for _, x := range a {
		for _, y := range b {
			from, to := x.first, x.last
			if y.first.After(from) {
				from = y.first
			}
			if y.last.Before(to) {
				to = y.last
			}
			longest = max(longest, to.Sub(from))
		}
	}
	return longest
}
