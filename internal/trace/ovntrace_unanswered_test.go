package trace_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// TestUnansweredAgreesWithOVN: what the gateway router has translated before, and nobody answered, gets the source that
// the first packet got, of the port that it leaves by, and no mark goes beyond. ovn-trace 25.03 is told what conntrack
// says: it keeps none.
func TestUnansweredAgreesWithOVN(t *testing.T) {
	a := servicesIn(t, world.SharedGateway)
	neighbours(a.zones["n1"])
	for f := range world.Family(2) {
		client, vip := compiletest.EgressAddr(60)[f], compiletest.EgressAddr(70)[f]
		p := trace.Packet{Src: client, Dst: vip, Proto: "tcp", DstPort: 80, Unanswered: true}
		ends := read(t, a.plans).Arrive("n1", p)
		if len(ends) != 2 {
			t.Errorf("%s: %q, want two endpoints", f.Match(), trace.Sentences(ends))
		}
		for _, end := range ends {
			want := fmt.Sprintf("%s as %s, unmarked", firstPort(end), end.Src)
			if have := a.translatedBefore(t, client, end); have != want {
				t.Errorf("%s: OVN says %s, the walk %s", f.Match(), have, want)
			}
		}
	}
	a.quiet(t)
}

// translatedBefore is what OVN does with a packet that conntrack has given its endpoint's address.
func (a *agreement) translatedBefore(t *testing.T, client netip.Addr, end trace.End) string {
	t.Helper()
	in, ip := uplinkEntrance(), world.FamilyOf(client).Match()
	text, err := a.zones["n1"].TraceOnce(t.Context(), "GR_n1", fmt.Sprintf("inport==\"rtoe-GR_n1\" && eth.src==%s && "+
		"eth.dst==%s && %s.src==%s && %s.dst==%s && ip.ttl==64 && tcp.dst==8080 && ct.new && ct_mark.force_snat==1",
		in.from, in.to, ip, client, ip, end.Dst), "--minimal", "--ct=new", "--ct=new")
	if err != nil {
		t.Fatal(err)
	}
	out, source := output.FindStringSubmatch(text), snat.FindStringSubmatch(text)
	if out == nil || source == nil {
		return text
	}
	said := fmt.Sprintf("%s as %s", out[1], source[1])
	if strings.LastIndex(text, "pkt.mark = 0;") < strings.LastIndex(text, "pkt.mark = 44;") {
		return said + ", marked"
	}
	return said + ", unmarked"
}
