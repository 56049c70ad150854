package ipam

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRandomLives takes, gives back and restarts at random, beside a model that keeps one list of all addresses, the
// one that was free for the longest time first.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		subnets := rapid.SampledFrom([][]netip.Prefix{
			prefixes("10.0.0.0/29"), prefixes("10.0.0.0/28", "fd00::/64"), prefixes("fd00::/125"),
		}).Draw(t, "subnets")
		l := &life{pool: mustNewRapid(t, subnets, nil), subnets: subnets, held: map[string][]netip.Addr{},
			freed: map[netip.Addr]int{}}
		t.Repeat(map[string]func(*rapid.T){
			"allocate": l.allocate,
			"release":  l.release,
			"restart":  l.restart,
			"":         l.neverTwice,
		})
	})
}

type life struct {
	pool    *Pool
	subnets []netip.Prefix
	held    map[string][]netip.Addr
	freed   map[netip.Addr]int
	clock   int
}

func mustNewRapid(t *rapid.T, subnets []netip.Prefix, inUse map[string][]netip.Addr) *Pool {
	p, err := New(subnets, inUse, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (l *life) allocate(t *rapid.T) {
	l.clock++
	owner := fmt.Sprint("pod", l.clock)
	have, err := l.pool.Allocate(owner)
	unused := l.free()
	if errors.Is(err, ErrFull) {
		if len(unused) > 0 {
			t.Fatalf("full, but %v are free", unused)
		}
		return
	}
	if err != nil || len(have) != len(l.subnets) {
		t.Fatalf("allocate: %v, %v", have, err)
	}
	for _, a := range unused {
		if l.freed[a] < l.freed[have[0]] {
			t.Fatalf("gave %s, free since %d, before %s, free since %d", have[0], l.freed[have[0]], a, l.freed[a])
		}
	}
	l.held[owner] = have
}

func (l *life) release(t *rapid.T) {
	if len(l.held) == 0 {
		t.Skip("nobody holds an address")
	}
	l.clock++
	owner := rapid.SampledFrom(slices.Sorted(maps.Keys(l.held))).Draw(t, "owner")
	l.pool.Release(owner)
	for _, a := range l.held[owner] {
		l.freed[a] = l.clock
	}
	delete(l.held, owner)
}

// restart forgets when addresses were given back, as a new process does.
func (l *life) restart(t *rapid.T) {
	l.pool, l.freed = mustNewRapid(t, l.subnets, l.held), map[netip.Addr]int{}
}

func (l *life) neverTwice(t *rapid.T) {
	seen := map[netip.Addr]string{}
	for owner, all := range l.held {
		for i, a := range all {
			if other, dup := seen[a]; dup {
				t.Fatalf("%s is %s's and %s's", a, owner, other)
			}
			seen[a] = owner
			if !l.subnets[i].Contains(a) || !podOffset(l.subnets[i], a) {
				t.Fatalf("%s is no pod address of %s", a, l.subnets[i])
			}
		}
		if len(all) == 2 && all[0].AsSlice()[3] != all[1].AsSlice()[15] {
			t.Fatalf("%s: host offsets of %v differ", owner, all)
		}
	}
}

// free are the addresses of the first (smaller) subnet that nobody holds.
func (l *life) free() []netip.Addr {
	taken := map[netip.Addr]bool{}
	for _, all := range l.held {
		taken[all[0]] = true
	}
	var free []netip.Addr
	for a := l.subnets[0].Addr(); l.subnets[0].Contains(a); a = a.Next() {
		if podOffset(l.subnets[0], a) && !taken[a] {
			free = append(free, a)
		}
	}
	return free
}

// podOffset says whether a is neither network, router, management port nor the highest address, counted one by one.
func podOffset(subnet netip.Prefix, a netip.Addr) bool {
	router := subnet.Addr().Next()
	return a != subnet.Addr() && a != router && a != router.Next() && subnet.Contains(a.Next())
}

func BenchmarkAllocateInIPv6Subnet(b *testing.B) {
	p := mustNew(b, prefixes("fd00::/64"), nil)
	for i := range 500 {
		if _, err := p.Allocate(fmt.Sprint(i)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := p.Allocate("x"); err != nil {
			b.Fatal(err)
		}
		p.Release("x")
	}
}
