package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func prefixes(all ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

func addrs(all ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range all {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func mustNew(t testing.TB, subnets []netip.Prefix, inUse map[string][]netip.Addr) *Pool {
	t.Helper()
	p, err := New(subnets, inUse, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantAllocate(t *testing.T, p *Pool, owner string, want ...string) {
	t.Helper()
	have, err := p.Allocate(owner)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(addrs(want...), have, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("addresses of %s (-want +have):\n%s", owner, diff)
	}
}

func TestFirstAddressIsBehindRouterAndManagementPort(t *testing.T) {
	p := mustNew(t, prefixes("10.244.1.0/24", "fd00:10:244:1::/64"), nil)
	wantAllocate(t, p, "a", "10.244.1.3", "fd00:10:244:1::3")
	wantAllocate(t, p, "b", "10.244.1.4", "fd00:10:244:1::4")
	wantAllocate(t, p, "a", "10.244.1.3", "fd00:10:244:1::3")
}

func TestFreedAddressIsTheLastToBeGivenAgain(t *testing.T) {
	p := mustNew(t, prefixes("10.0.0.0/29"), nil)
	wantAllocate(t, p, "a", "10.0.0.3")
	wantAllocate(t, p, "b", "10.0.0.4")
	p.Release("b")
	p.Release("a")
	wantAllocate(t, p, "c", "10.0.0.5")
	wantAllocate(t, p, "d", "10.0.0.6")
	wantAllocate(t, p, "e", "10.0.0.4")
	wantAllocate(t, p, "f", "10.0.0.3")
}

func TestFullSubnetIsNamed(t *testing.T) {
	p := mustNew(t, prefixes("10.0.0.0/29", "fd00::/64"), nil)
	for i := range 4 {
		if _, err := p.Allocate(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.Allocate("one too many")
	if !errors.Is(err, ErrFull) {
		t.Fatalf("error %v, want ErrFull", err)
	}
	for _, part := range []string{"10.0.0.0/29", "4 of 4"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if _, has := p.Owned()["one too many"]; has {
		t.Error("a refused owner holds addresses")
	}
}

func TestFamiliesTakeDifferentOffsetsWhenNoCommonOneIsFree(t *testing.T) {
	p := mustNew(t, prefixes("10.0.0.0/29", "fd00::/125"), map[string][]netip.Addr{
		"a": addrs("10.0.0.3"), "b": addrs("10.0.0.4"), "c": addrs("fd00::5"), "d": addrs("fd00::6"),
	})
	have, err := p.Allocate("e")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(have[0].String(), "10.0.0.") || have[0].Less(netip.MustParseAddr("10.0.0.5")) {
		t.Errorf("IPv4 address %s, want 10.0.0.5 or .6", have[0])
	}
	if netip.MustParseAddr("fd00::4").Less(have[1]) {
		t.Errorf("IPv6 address %s, want fd00::3 or ::4", have[1])
	}
}

func TestRestartGoesOnBehindTheHighestInUse(t *testing.T) {
	p := mustNew(t, prefixes("10.0.0.0/28"),
		map[string][]netip.Addr{"a": addrs("10.0.0.7"), "elsewhere": addrs("192.0.2.1")})
	wantAllocate(t, p, "b", "10.0.0.8")
	wantAllocate(t, p, "a", "10.0.0.7")
	wantAllocate(t, p, "elsewhere", "192.0.2.1")
}

func TestAddressThatAPodSaysIsTheLastToBeGiven(t *testing.T) {
	p, err := New(prefixes("10.0.0.0/29"), nil, addrs("10.0.0.3", "10.0.0.4", "192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	wantAllocate(t, p, "a", "10.0.0.5")
	p.Release("a")
	wantAllocate(t, p, "b", "10.0.0.6")
	wantAllocate(t, p, "c", "10.0.0.3")
	wantAllocate(t, p, "d", "10.0.0.4")
}

func TestAddressHeldTwiceIsFreeWhenBothAreGone(t *testing.T) {
	p := mustNew(t, prefixes("10.0.0.0/29"), map[string][]netip.Addr{
		"a": addrs("10.0.0.3"), "b": addrs("10.0.0.3"), "c": addrs("10.0.0.4"), "d": addrs("10.0.0.5"),
		"e": addrs("10.0.0.6"),
	})
	p.Release("a")
	if have, err := p.Allocate("f"); err == nil {
		t.Errorf("gave %v while b still holds it", have)
	}
	p.Release("b")
	wantAllocate(t, p, "f", "10.0.0.3")
}

func TestBadSubnets(t *testing.T) {
	for name, subnets := range map[string][]netip.Prefix{
		"none":           nil,
		"zero":           {{}},
		"two of IPv4":    prefixes("10.0.0.0/24", "10.0.1.0/24"),
		"too small":      prefixes("10.0.0.0/30"),
		"one address":    prefixes("10.0.0.0/32"),
		"IPv4 in IPv6":   prefixes("::ffff:10.0.0.0/120"),
		"too small IPv6": prefixes("fd00::/127"),
	} {
		if _, err := New(subnets, nil, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestAddressesOfUnalignedAndLargeSubnets(t *testing.T) {
	wantAllocate(t, mustNew(t, prefixes("10.0.255.128/25"), nil), "a", "10.0.255.131")
	p := mustNew(t, prefixes("10.0.0.0/8"), map[string][]netip.Addr{"far": addrs("10.200.0.1")})
	wantAllocate(t, p, "a", "10.0.0.3")
	wantAllocate(t, mustNew(t, prefixes("fd00::/64"), map[string][]netip.Addr{"far": addrs("fd00::1:0:0:4")}), "a",
		"fd00::3")
}
