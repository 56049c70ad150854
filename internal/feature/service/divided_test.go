package service

import (
	"fmt"
	"net/netip"
	"testing"
)

// TestDivided: the numbers are divided whole, whatever the shares, and none has less than nothing of them.
func TestDivided(t *testing.T) {
	for _, n := range []int{1, 3, modulus, modulus + 5, 3 * modulus} {
		among, next := make([]share, n), 0
		for i := range among {
			among[i] = share{netip.AddrPort{}, 1 + i%3}
		}
		for _, interval := range divideNumbers(among) {
			var first, last int
			if interval == "" {
				continue
			}
			if _, err := fmt.Sscanf(interval, "%d-%d", &first, &last); err != nil || first != next || last < first {
				t.Fatalf("%d shares: %s after %d", n, interval, next-1)
			}
			next = last + 1
		}
		if next != modulus {
			t.Errorf("%d shares: %d of %d numbers are divided", n, next, modulus)
		}
	}
}
