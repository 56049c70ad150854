package conntrack

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func balancedTo(endpoints ...string) *plan.State {
	s := plan.New()
	for _, e := range endpoints {
		s.Datagrams.Put(planetest.Owner("service"), plan.Datagram{Protocol: "udp",
			From: netip.MustParseAddrPort("10.96.0.10:53"), To: netip.MustParseAddrPort(e), OVN: true}, plan.None{})
	}
	return s
}

// TestBalancedEndsLater: connections that a former flow makes after the endpoint has gone end at each look; those to an
// endpoint that has come back do not.
func TestBalancedEndsLater(t *testing.T) { synctest.Test(t, endsLater) }

func endsLater(t *testing.T) {
	f := NewFake(nil, toService("10.244.1.5:1", "10.96.0.10:53", "10.244.2.5:53"), toService("10.244.1.5:2",
		"10.96.0.10:53", "10.244.2.6:53"),
		toService("10.244.1.5:3", "10.96.0.11:53", "10.244.2.5:53"))
	p := NewBalanced(t.Context(), f, slog.New(slog.DiscardHandler))
	for _, s := range []*plan.State{balancedTo("10.244.2.5:53", "10.244.2.6:53"), balancedTo("10.244.2.7:53"),
		balancedTo("10.244.2.6:53")} {
		if err := p.Shrink(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	for i, after := range lookAgain() {
		f.Add(toService(fmt.Sprint("10.244.1.5:", 4+i), "10.96.0.10:53", "10.244.2.5:53"))
		time.Sleep(time.Until(begin.Add(after)))
		synctest.Wait()
		if have, want := clients(f), "10.244.1.5:2 10.244.1.5:3"; have != want {
			t.Fatalf("after %s connections of %q are left, want %q", after, have, want)
		}
	}
}

// TestBalancedEndsWhatWasBegunEarly: connections to a Service that had no endpoint end with its first one, not with the
// next one, and not those of others.
func TestBalancedEndsWhatWasBegunEarly(t *testing.T) { synctest.Test(t, endsWhatWasBegunEarly) }

func endsWhatWasBegunEarly(t *testing.T) {
	early := func(port int) Entry {
		return toService(fmt.Sprint("172.18.0.9:", port), "10.96.0.10:53", "10.96.0.10:53")
	}
	f := NewFake(nil, early(1), toService("172.18.0.9:2", "10.96.0.11:53", "10.96.0.11:53"),
		toService("172.18.0.9:3", "10.96.0.10:53", "10.244.2.5:53"))
	p := NewBalanced(t.Context(), f, slog.New(slog.DiscardHandler))
	shrink := func(s *plan.State, want string) {
		t.Helper()
		if err := p.Shrink(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if have := clients(f); have != want {
			t.Errorf("connections of %q are left, want %q", have, want)
		}
	}
	shrink(plan.New(), "172.18.0.9:1 172.18.0.9:2 172.18.0.9:3")
	shrink(balancedTo("10.244.2.5:53"), "172.18.0.9:2 172.18.0.9:3")
	f.Add(early(4))
	shrink(balancedTo("10.244.2.5:53", "10.244.2.6:53"), "172.18.0.9:2 172.18.0.9:3 172.18.0.9:4")
}

// TestPairsOfARealSwitch: connections to one endpoint end, whatever zone they are in.
func TestPairsOfARealSwitch(t *testing.T) {
	s := ovstest.Start(t, ovstest.Dummy)
	s.Vsctl("add-br", "br0", "--", "set", "bridge", "br0", "fail_mode=secure", "--", "add-port", "br0", "p1", "--",
		"set", "interface", "p1", "ofport_request=1", "--", "add-port", "br0", "p2")
	for _, f := range []string{
		"ip,in_port=1,nw_src=10.244.1.5,actions=ct(commit,zone=5,nat(dst=10.244.2.5:53)),2",
		"ip,in_port=1,nw_src=10.244.1.6,actions=ct(commit,zone=6,nat(dst=10.244.2.5:53)),2",
		"ip,in_port=1,nw_src=10.244.1.7,actions=ct(commit,zone=6,nat(dst=10.244.2.6:53)),2",
		"ipv6,in_port=1,actions=ct(commit,zone=6,nat(dst=[fd00:10:244:2::5]:53)),2",
	} {
		s.Ofctl("add-flow", s.Mgmt("br0"), f)
	}
	eth := "in_port(1),eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a),"
	for _, src := range []string{"10.244.1.5", "10.244.1.6", "10.244.1.7"} {
		ip := eth + "eth_type(0x0800),ipv4(src=" + src + ",dst=10.96.0.10,proto=%d,tos=0,ttl=64,frag=no),"
		s.Appctl("netdev-dummy/receive", "p1", fmt.Sprintf(ip, 17)+"udp(src=1234,dst=53)")
		s.Appctl("netdev-dummy/receive", "p1", fmt.Sprintf(ip, 6)+"tcp(src=1234,dst=53),tcp_flags(syn)")
	}
	s.Appctl("netdev-dummy/receive", "p1",
		eth+"eth_type(0x86dd),ipv6(src=fd00:10:244::5,dst=fd00:10:96::10,label=0,proto=17,tclass=0,hlimit=64,frag=no),udp(src=1234,dst=53)")
	target := Switch{s.RunDir}
	left := func() (n int) {
		for _, zone := range []int{5, 6} {
			all, err := target.Dump(t.Context(), zone)
			if err != nil {
				t.Fatal(err)
			}
			n += len(all)
		}
		return n
	}
	if n := left(); n != 7 {
		t.Fatalf("%d connections, want 7", n)
	}
	for i, c := range []struct{ from, to string }{{"10.96.0.10:53", "10.244.2.5:53"}, {"[fd00:10:96::10]:53",
		"[fd00:10:244:2::5]:53"}} {
		pair := plan.Datagram{Protocol: "udp", From: netip.MustParseAddrPort(c.from), OVN: true,
			To: netip.MustParseAddrPort(c.to)}
		pairs := []plan.Datagram{pair}
		for n := range i * 2 * fewPairs { // the second one among many
			another := pair
			another.To = netip.AddrPortFrom(pair.To.Addr(), uint16(1000+n))
			pairs = append(pairs, another)
		}
		for range 2 { // once more when there is nothing left
			if err := target.FlushPairs(t.Context(), pairs...); err != nil {
				t.Fatal(err)
			}
		}
		if n, want := left(), []int{5, 4}[i]; n != want {
			t.Errorf("%d connections left after %s, want %d", n, c.to, want)
		}
	}
}
