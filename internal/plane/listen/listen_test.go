package listen

import (
	"encoding/hex"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/plane/planetest"
)

// Frames as other machines send them.
const (
	announcement = "ffffffffffff" + "020000000009" + "0806" + "0001080006040001" + "020000000009" + "ac120032" +
		"000000000000" + "ac120032"
	probe = "ffffffffffff" + "020000000009" + "0806" + "0001080006040001" + "020000000009" + "00000000" +
		"000000000000" + "ac120032"
	reply = "020000000001" + "020000000009" + "0806" + "0001080006040002" + "020000000009" + "ac120032" +
		"020000000001" + "ac120064"
	// An advertisement of fc00::50 at 02:00:00:00:00:09, override, to all nodes.
	advertised = "333300000001" + "020000000009" + "86dd" + "60000000" + "0020" + "3aff" +
		"fc000000000000000000000000000050" +
		"ff020000000000000000000000000001" + "88000000" + "20000000" + "fc000000000000000000000000000050" + "0201" +
		"020000000009"
	// The same, forwarded by a router.
	routed = "333300000001" + "020000000009" + "86dd" + "60000000" + "0020" + "3afe" +
		"fc000000000000000000000000000050" +
		"ff020000000000000000000000000001" + "88000000" + "20000000" + "fc000000000000000000000000000050" + "0201" +
		"020000000009"
)

func TestParse(t *testing.T) {
	v4 := Claim{netip.MustParseAddr("172.18.0.50"), "02:00:00:00:00:09"}
	v6 := Claim{netip.MustParseAddr("fc00::50"), "02:00:00:00:00:09"}
	for name, x := range map[string]struct {
		frame string
		want  Claim
		ok    bool
	}{
		"announcement": {announcement, v4, true}, "reply": {reply, v4, true}, "probe": {probe, Claim{}, false},
		"padded": {announcement + "0000000000000000", v4, true}, "advertisement": {advertised, v6, true},
		"routed": {routed, Claim{}, false},
		"short":  {announcement[:60], Claim{}, false}, "other": {"ffffffffffff" + "020000000009" + "0800" + "4500",
			Claim{}, false},
	} {
		if have, ok := parseClaim(bytesOf(t, x.frame)); ok != x.ok || ok && have != x.want {
			t.Errorf("%s: have %+v %v", name, have, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{announcement, probe, reply, advertised, routed} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(_ *testing.T, frame []byte) { parseClaim(frame) })
}

func bytesOf(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWatchedOnly(t *testing.T) {
	f := NewFake()
	ip := netip.MustParseAddr("172.18.0.50")
	f.Say(Claim{ip, "02:00:00:00:00:09"})
	f.Watch(map[netip.Addr]string{ip: "02:00:00:00:00:01"}, nil)
	f.Say(Claim{ip, "02:00:00:00:00:01"})
	f.Say(Claim{netip.MustParseAddr("172.18.0.51"), "02:00:00:00:00:09"})
	if n := len(f.Claims()); n != 0 {
		t.Fatalf("%d claims that are no news", n)
	}
	f.Say(Claim{ip, "02:00:00:00:00:09"})
	if c := <-f.Claims(); c.MAC != "02:00:00:00:00:09" {
		t.Errorf("have %+v", c)
	}
}

// TestFlood: of 100,000 claims to one address by as many machines some are passed on, and one to another address is,
// too.
func TestFlood(t *testing.T) {
	f := NewFake()
	flooded, other := netip.MustParseAddr("172.18.0.50"), netip.MustParseAddr("172.18.0.51")
	f.Watch(map[netip.Addr]string{flooded: "02:00:00:00:00:01", other: "02:00:00:00:00:01"}, nil)
	start := time.Now()
	for i := range 100_000 {
		f.Say(Claim{flooded, net.HardwareAddr{2, 9, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}.String()})
	}
	f.Say(Claim{other, "02:00:00:00:00:09"})
	most := burst + int(time.Since(start)/pause) + 1
	if n := len(f.Claims()); n < 2 || n > most+1 {
		t.Errorf("%d claims are passed on, want %d at most", n, most+1)
	}
	var last Claim
	for len(f.Claims()) > 0 {
		last = <-f.Claims()
	}
	if last.IP != other {
		t.Error("the claim to another address is lost")
	}
	if f.Watch(nil, nil); len(f.spoken) > 0 {
		t.Errorf("%d addresses are remembered that nobody watches", len(f.spoken))
	}
}

// TestLink: what comes in from the link is received, and what the host sends itself is not; after the device was made
// anew it is received again.
func TestLink(t *testing.T) {
	planetest.OwnNetns(t)
	planetest.VethPair(t, "a0", "b0")
	l := New(t.Context(), nil, slog.New(slog.DiscardHandler))
	l.Watch(map[netip.Addr]string{netip.MustParseAddr("172.18.0.50"): "02:00:00:00:00:01",
		netip.MustParseAddr("fc00::50"): "02:00:00:00:00:01"}, nil)
	for range 2 {
		conn, err := listenOn("a0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- l.readFrames(conn) }()
		for _, frame := range []string{announcement, advertised} {
			await(t, l, frame)
		}
		link, err := netlink.LinkByName("a0")
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkDel(link); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil {
			t.Error("no error though the device is gone")
		}
		planetest.VethPair(t, "a0", "b0")
	}
}

// TestDevices: each device that is named is listened on until it is named no more.
func TestDevices(t *testing.T) {
	l := New(t.Context(), nil, slog.New(slog.DiscardHandler))
	for _, want := range [][]string{{"nowhere1"}, {"nowhere1", "nowhere2"}, {"nowhere2"}, nil} {
		l.Watch(nil, want)
		if have := slices.Sorted(maps.Keys(l.open)); !slices.Equal(have, want) {
			t.Errorf("listens on %v, want %v", have, want)
		}
	}
}

// await sends a frame at the other end until it is received; the other frame, which this end sends, never is.
func await(t *testing.T, l *Link, frame string) {
	t.Helper()
	want, _ := parseClaim(bytesOf(t, frame))
	own := map[string]string{announcement: advertised, advertised: announcement}[frame]
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		send(t, "a0", own)
		send(t, "b0", frame)
		select {
		case c := <-l.Claims():
			if c != want {
				t.Errorf("received %+v, want %+v", c, want)
			}
			drain(l)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s was not received", frame)
}

// drain takes what was sent before the first was received.
func drain(l *Link) {
	for {
		select {
		case <-l.Claims():
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

func send(t *testing.T, name, frame string) {
	t.Helper()
	dev, err := net.InterfaceByName(name)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := packet.Listen(dev, packet.Raw, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := bytesOf(t, frame)
	if _, err := conn.WriteTo(b, &packet.Addr{HardwareAddr: b[:6]}); err != nil {
		t.Fatal(err)
	}
}
