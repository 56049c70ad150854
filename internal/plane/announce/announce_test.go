package announce

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func announcement(ip string) plan.Announcement {
	return plan.Announcement{Dev: "a0", IP: netip.MustParseAddr(ip), MAC: "0a:58:ac:12:00:02"}
}

func state(ips ...string) *plan.State {
	s := plan.New()
	for _, ip := range ips {
		s.Announcements.Put(planetest.Owner("eip"), announcement(ip), plan.None{})
	}
	return s
}

func TestARPFrames(t *testing.T) {
	f, err := announcementFrames(netip.MustParseAddr("172.18.0.50"), net.HardwareAddr{0x0a, 0x58, 0xac, 0x12, 0, 2},
		0x12345678)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"ffffffffffff" + "0a58ac120002" + "0806" + "0001080006040001" + "0a58ac120002" + "ac120032" + "000012345678" +
			"ac120032",
		"ffffffffffff" + "0a58ac120002" + "0806" + "0001080006040002" + "0a58ac120002" + "ac120032" + "0a58ac120002" +
			"ac120032",
	} {
		if got := hex.EncodeToString(f[i]); got != want {
			t.Errorf("frame %d\n%s, want\n%s", i, got, want)
		}
	}
}

func TestProbeFrames(t *testing.T) {
	mac := net.HardwareAddr{0x0a, 0x58, 0xac, 0x12, 0, 2}
	v4, err := probeFrames(netip.MustParseAddr("172.18.0.50"), mac)
	if err != nil {
		t.Fatal(err)
	}
	want := "ffffffffffff" + "0a58ac120002" + "0806" + "0001080006040001" + "0a58ac120002" + "00000000" +
		"000000000000" + "ac120032"
	if got := hex.EncodeToString(v4[0]); got != want {
		t.Errorf("have\n%s, want\n%s", got, want)
	}
	ip := netip.MustParseAddr("fc00::1:2350")
	v6, err := probeFrames(ip, mac)
	if err != nil {
		t.Fatal(err)
	}
	b := v6[0]
	if got, want := hex.EncodeToString(b[:22]), "3333ff012350"+"0a58ac120002"+"86dd"+"60000000"+"0018"+
		"3aff"; got != want {
		t.Errorf("headers %s, want %s", got, want)
	}
	if sum := checksum(b[22:54], b[54:]); sum != 0xffff || b[22] != 0 {
		t.Errorf("checksum over pseudo header and message is %#x, want 0xffff; source begins with %x", sum, b[22])
	}
	m, err := ndp.ParseMessage(b[54:])
	if ns, ok := m.(*ndp.NeighborSolicitation); err != nil || !ok || ns.TargetAddress != ip || len(ns.Options) > 0 {
		t.Errorf("message %+v, %v", m, err)
	}
}

func TestAdvertisementFrame(t *testing.T) {
	ip := netip.MustParseAddr("fc00::50")
	f, err := announcementFrames(ip, net.HardwareAddr{0x0a, 0x58, 0xac, 0x12, 0, 2}, 0x12345678)
	if err != nil {
		t.Fatal(err)
	}
	b := f[0]
	if got, want := hex.EncodeToString(b[:22]), "333300000001"+"0a58ac120002"+"86dd"+"60045678"+"0020"+
		"3aff"; got != want {
		t.Errorf("headers %s, want %s", got, want)
	}
	if sum := checksum(b[22:54], b[54:]); sum != 0xffff {
		t.Errorf("checksum over pseudo header and message is %#x, want 0xffff", sum)
	}
	m, err := ndp.ParseMessage(b[54:])
	na, ok := m.(*ndp.NeighborAdvertisement)
	if err != nil || !ok || !na.Override || na.Solicited || na.Router || na.TargetAddress != ip {
		t.Fatalf("message %+v, %v", m, err)
	}
}

// checksum is the ones' complement sum of RFC 4443 2.3.
func checksum(addrs, message []byte) uint32 {
	var sum uint32
	for _, b := range [][]byte{addrs, {0, 0, 0, byte(len(message)), 0, 0, 0, protoICMP}, message} {
		for i := 0; i < len(b); i += 2 {
			sum += uint32(b[i])<<8 | uint32(b[i+1])
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return sum
}

func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fake{}
		p := New(t.Context(), f, slog.New(slog.DiscardHandler))
		apply(t, p, state("172.18.0.50"))
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {99 * time.Millisecond, 1}, {2 * time.Millisecond, 2}, {900 * time.Millisecond, 3}, {time.Second, 4},
			{3 * time.Second, 5}, {59 * time.Second, 5}, {time.Second, 6}, {time.Minute, 7}} {
			time.Sleep(c.after)
			synctest.Wait()
			if got := len(f.Sent()); got != c.want {
				t.Errorf("%d announcements after %v more, want %d", got, c.after, c.want)
			}
		}
		apply(t, p, state("172.18.0.50"))
		synctest.Wait()
		if got := len(f.Sent()); got != 7 {
			t.Errorf("applying the same again announced: %d", got)
		}
		apply(t, p, plan.New())
		time.Sleep(time.Hour)
		if got := len(f.Sent()); got != 7 {
			t.Errorf("still repeated after Shrink: %d", got)
		}
		apply(t, p, state("172.18.0.50"))
		if got := len(f.Sent()); got != 8 {
			t.Errorf("%d after it came back, want 8", got)
		}
		p.Defend(netip.MustParseAddr("172.18.0.50"))
		p.Defend(netip.MustParseAddr("172.18.0.51"))
		p.Probe(announcement("172.18.0.50"))
		if sent, probed := len(f.Sent()), len(f.Probed()); sent != 9 || probed != 10 {
			t.Errorf("%d announcements and %d probes, want 9 and 10", sent, probed)
		}
	})
}

// TestAnnouncesNothingLate: what is far beyond its time is not announced, for a process that stood still may have lost
// the address meanwhile. If no plan takes it away, it is announced a little later.
func TestAnnouncesNothingLate(t *testing.T) {
	f, now := &Fake{}, time.Now()
	due := &schedule{first: now.Add(-time.Hour), sent: 3}
	p := &Plane{sender: f, log: slog.New(slog.DiscardHandler),
		held: map[plan.Announcement]*schedule{announcement("172.18.0.50"): due}}
	if wait := p.sendDue(now); len(f.Sent())+len(f.Probed()) > 0 || wait != patience {
		t.Errorf("announced %v, asked about %v, next after %s", f.Sent(), f.Probed(), wait)
	}
	if p.sendDue(now.Add(patience)); len(f.Sent()) != 1 {
		t.Errorf("announced %v after %s more", f.Sent(), patience)
	}
}

// TestForgettingAnnouncesNothing: whoever stood still forgets and grows with the plan of before, in which there may be
// what is another node's by now.
func TestForgettingAnnouncesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fake{}
		p := &Plane{sender: f, log: slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1),
			held: map[plan.Announcement]*schedule{}}
		want := state("172.18.0.50", "172.18.0.51")
		apply(t, p, want)
		time.Sleep(5 * time.Minute) // nobody calls sendDue: the process stands still
		p.Forget()
		if apply(t, p, want); len(f.Sent()) != 2 {
			t.Errorf("announced %v", f.Sent()[2:])
		}
		if p.sendDue(time.Now()); len(f.Sent()) != 2 {
			t.Errorf("announced at once %v", f.Sent()[2:])
		}
		time.Sleep(patience)
		if p.sendDue(time.Now()); len(f.Sent()) != 4 {
			t.Errorf("announced in the end %v", f.Sent()[2:])
		}
	})
}

// TestForgettingTriesAgain: what could not be announced is, when the targets are looked at anew.
func TestForgettingTriesAgain(t *testing.T) {
	f := &Fake{Fail: func(plan.Announcement) error { return errors.New("no such device") }}
	p := &Plane{sender: f, log: slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1),
		held: map[plan.Announcement]*schedule{}}
	want := state("172.18.0.50")
	if err := p.Grow(t.Context(), want); !plane.OnlyRefusals(err) || err == nil {
		t.Fatalf("want a refusal, have %v", err)
	}
	f.Fail = nil
	p.Forget()
	if err := p.Grow(t.Context(), want); err != nil || len(f.Sent()) != 1 {
		t.Errorf("%v, announced %v", err, f.Sent())
	}
}

// TestTold: what no plan has is announced as often as repeats has it, and nobody is asked about it. One that is told
// again goes on as it was, also when plans come and go; one that is not is announced no more.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fake{}
		p := New(t.Context(), f, slog.New(slog.DiscardHandler))
		stays, leaves, comes := announcement("172.18.0.2"), announcement("172.18.0.3"), announcement("172.18.0.4")
		p.Tell([]plan.Announcement{stays, leaves})
		time.Sleep(1500 * time.Millisecond)
		p.Tell([]plan.Announcement{stays, comes})
		apply(t, p, plan.New())
		time.Sleep(time.Hour)
		p.Tell([]plan.Announcement{stays, comes})
		time.Sleep(time.Hour)
		count := map[plan.Announcement]int{}
		for _, a := range f.Sent() {
			count[a]++
		}
		all := 1 + len(repeats)
		if count[stays] != all || count[leaves] != 3 || count[comes] != all || len(f.Probed()) > 0 {
			t.Errorf("announced %v, asked about %v", count, f.Probed())
		}
	})
}

// TestTellsNothingLate is TestAnnouncesNothingLate for what no plan has: an address that floats may have moved.
func TestTellsNothingLate(t *testing.T) {
	f, now := &Fake{}, time.Now()
	p := &Plane{sender: f, log: slog.New(slog.DiscardHandler),
		told: map[plan.Announcement]*schedule{announcement("172.18.0.200"): {first: now.Add(-time.Hour), sent: 2}}}
	if wait := p.sendDue(now); len(f.Sent()) > 0 || wait != patience {
		t.Errorf("announced %v an hour late, next after %s", f.Sent(), wait)
	}
	if p.sendDue(now.Add(patience)); len(f.Sent()) != 1 {
		t.Errorf("announced %v after %s more", f.Sent(), patience)
	}
}

func TestFailureIsItsOwnersAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mended atomic.Bool
		f := &Fake{Fail: func(a plan.Announcement) error {
			if !mended.Load() && a.IP.Is6() {
				return errors.New("no such device")
			}
			return nil
		}}
		p := New(t.Context(), f, slog.New(slog.DiscardHandler))
		err := p.Grow(t.Context(), state("172.18.0.50", "fc00::50"))
		if r := plane.Refusals(err); len(r) != 1 || r[0].Owner != planetest.Owner("eip") || len(f.Sent()) != 1 {
			t.Fatalf("got %v with %d sent", err, len(f.Sent()))
		}
		mended.Store(true)
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if err := p.Grow(t.Context(), state("172.18.0.50", "fc00::50")); err != nil || len(f.Sent()) != 3 {
			t.Fatalf("after the device came: %v, %d sent, want 3", err, len(f.Sent()))
		}
	})
}

// TestLink sends on one end of a veth pair and receives at the other.
func TestLink(t *testing.T) {
	planetest.OwnNetns(t)
	planetest.VethPair(t, "a0", "b0")
	awaitRunning(t, "a0")
	dev, err := net.InterfaceByName("b0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := packet.Listen(dev, packet.Raw, unix.ETH_P_ALL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, ip := range []string{"172.18.0.50", "fc00::50"} {
		if err := (Links{}).Send(announcement(ip)); err != nil {
			t.Fatal(err)
		}
		if err := (Links{}).Probe(announcement(ip)); err != nil {
			t.Fatal(err)
		}
		mac := net.HardwareAddr{0x0a, 0x58, 0xac, 0x12, 0, 2}
		told, _ := announcementFrames(netip.MustParseAddr(ip), mac, 0)
		asked, _ := probeFrames(netip.MustParseAddr(ip), mac)
		first := receive(t, conn, told[0])
		for _, f := range append(told[1:], asked...) {
			receive(t, conn, f)
		}
		if err := (Links{}).Send(announcement(ip)); err != nil {
			t.Fatal(err)
		}
		if again := receive(t, conn, told[0]); again == first {
			t.Errorf("announced twice alike: %x", again)
		}
	}
}

// withoutNonce is a frame, and zero where announcements differ.
func withoutNonce(frame []byte) string {
	b := slices.Clone(frame)
	if isARP := binary.BigEndian.Uint16(b[12:]) == etherARP; isARP && b[21] == 1 {
		clear(b[32:38])
	} else if !isARP {
		b[15] &= 0xf0
		clear(b[16:18])
	}
	return string(b)
}

// awaitRunning waits for the carrier, which the kernel notices some time after both ends are up; until then it drops
// what is sent.
func awaitRunning(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if l, err := net.InterfaceByName(name); err == nil && l.Flags&net.FlagRunning != 0 {
			return
		}
	}
	t.Fatalf("%s has no carrier after 5 s", name)
}

// receive reads until the frame comes; the kernel sends router solicitations of its own.
func receive(t *testing.T, conn *packet.Conn, want []byte) string {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	b := make([]byte, 2000)
	for {
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			t.Fatalf("frame %x did not arrive: %v", want, err)
		}
		if strings.HasPrefix(withoutNonce(b[:n]), string(want)) {
			return string(b[:n])
		}
	}
}

func apply(t *testing.T, p *Plane, s *plan.State) {
	t.Helper()
	if err := plane.Apply(t.Context(), []plane.Plane{p}, s); err != nil {
		t.Fatal(err)
	}
}

// TestHostileAnnouncements: what is no hardware address, and no device, is refused alone and sent nowhere.
func TestHostileAnnouncements(t *testing.T) {
	for _, a := range []plan.Announcement{{Dev: "eth0", MAC: "02:00:00:00:00:01\n"},
		{Dev: "eth0", MAC: "02:00:00:00:00:01:00:02"}, {Dev: "../eth0", MAC: "02:00:00:00:00:01"}} {
		link, s := &Fake{}, state("172.18.0.1")
		a.IP = netip.MustParseAddr("172.18.0.2")
		s.Announcements.Put(planetest.Owner("hostile"), a, plan.None{})
		err := New(t.Context(), link, slog.New(slog.DiscardHandler)).Grow(t.Context(), s)
		if r := plane.Refusals(err); len(r) != 1 || r[0].Owner.Feature != "hostile" || !plane.OnlyRefusals(err) ||
			len(link.Probed()) != 1 {
			t.Errorf("%+v: %v, probed %v", a, err, link.Probed())
		}
	}
}
