package traffic

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

// frame is an Ethernet frame with a UDP datagram in it.
func frame(src, dst netip.Addr, port uint16, payload string) []byte {
	out := make([]byte, 12)
	if src.Is4() {
		ip := make([]byte, 20)
		ip[0], ip[9] = 0x45, 17
		copy(ip[12:], src.AsSlice())
		copy(ip[16:], dst.AsSlice())
		out = append(append(out, 0x08, 0x00), ip...)
	} else {
		ip := make([]byte, 40)
		ip[0], ip[6] = 0x60, 17
		copy(ip[8:], src.AsSlice())
		copy(ip[24:], dst.AsSlice())
		out = append(append(out, 0x86, 0xdd), ip...)
	}
	udp := make([]byte, 8)
	binary.BigEndian.PutUint16(udp[2:], port)
	return append(append(out, udp...), payload...)
}

func TestParse(t *testing.T) {
	for _, addresses := range [][2]string{{"172.18.0.33", "172.18.0.100"}, {"fc00::33", "fc00::100"}} {
		src, dst := netip.MustParseAddr(addresses[0]), netip.MustParseAddr(addresses[1])
		have, ok := parse(frame(src, dst, Port, "egret-e2e ns/pod old 7"))
		if want := (Sighting{Pod: "ns/pod", Kind: "old", Number: 7, Src: src, Dst: dst}); !ok || have != want {
			t.Errorf("parsed %+v, %v, want %+v", have, ok, want)
		}
		for _, other := range [][]byte{
			frame(src, dst, Port+1, "egret-e2e ns/pod old 7"), frame(src, dst, Port, "hello ns/pod old 7"),
			frame(src, dst, Port, "egret-e2e ns/pod old x"), frame(src, dst, Port, "")[:40],
		} {
			if have, ok := parse(other); ok {
				t.Errorf("took %+v for a sender's", have)
			}
		}
	}
}

func TestWrongAndLost(t *testing.T) {
	right, wrong := netip.MustParseAddr("172.18.0.33"), netip.MustParseAddr("172.18.0.2")
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	all := []Sighting{
		{At: at(0), Pod: "ns/a", Kind: "new", Number: 0, Src: right},
		{At: at(10), Pod: "ns/a", Kind: "new", Number: 1, Src: right},
		{At: at(60), Pod: "ns/a", Kind: "new", Number: 6, Src: wrong},
		{At: at(70), Pod: "other/a", Kind: "new", Number: 0, Src: wrong},
		{At: at(80), Pod: "ns/a", Kind: "new", Number: 0, Src: right}, // started anew
	}
	if have := Wrong(all, "ns/", []netip.Addr{right}); len(have) != 1 || have["ns/a as 172.18.0.2"] != 1 {
		t.Errorf("wrong: %v, want one of ns/a as 172.18.0.2", have)
	}
	flow := Flow{Pod: "ns/a", Kind: "new"}
	if have, want := Lost(all[:4]), (Loss{Gap: 50 * time.Millisecond, Of: flow, Total: 4,
		By: []Missing{{flow, 4, at(10)}}}); !reflect.DeepEqual(have, want) {
		t.Errorf("lost %v, want %v", have, want)
	}
	if have := Lost(all); have.Total != 4 || have.By != nil {
		t.Errorf("lost %v, want 4, none after the pod's last start", have)
	}
}

// TestOvertaken: what comes late is not lost, and a pod that starts anew is told from it.
func TestOvertaken(t *testing.T) {
	for _, c := range []struct {
		name    string
		numbers []int
		want    int
	}{
		{"one overtaken", []int{7, 8, 10, 9, 11}, 0},
		{"one of three lost", []int{7, 11, 8, 10, 12}, 1},
		{"overtaken by the first that was seen", []int{8, 7, 9, 10}, 0},
		{"started anew", []int{0, 2, 0, 1, 3}, 2},
		{"started anew after long", []int{2000, 2002, 0, 1}, 1},
	} {
		var all []Sighting
		for _, n := range c.numbers {
			all = append(all, Sighting{Pod: "ns/a", Number: n})
		}
		if have := Lost(all).Total; have != c.want {
			t.Errorf("%s: %d lost of %v, want %d", c.name, have, c.numbers, c.want)
		}
	}
}
