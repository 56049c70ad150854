package kube

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// addrPair is an address a family, as annotations spell it.
type addrPair struct {
	IPv4 string `json:"ipv4,omitempty"`
	IPv6 string `json:"ipv6,omitempty"`
}

func (p addrPair) parsePrefixes() ([]netip.Prefix, error) {
	return parsePrefixes([]string{p.IPv4, p.IPv6})
}

func pairOf(ps []netip.Prefix) addrPair {
	var out addrPair
	for _, p := range ps {
		if world.FamilyOf(p.Addr()) == world.V4 {
			out.IPv4 = p.String()
		} else {
			out.IPv6 = p.String()
		}
	}
	return out
}

// oneOrMany is a JSON string, or a list of them.
type oneOrMany []string

func (o *oneOrMany) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = oneOrMany{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return err
	}
	*o = many
	return nil
}

// parseAddr is an address in its one form: IPv4 in IPv6 is IPv4, and there is no zone.
func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, err
	}
	if a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("address %q has a zone", s)
	}
	return a.Unmap(), nil
}

// parsePrefix is an address and its length, or a subnet.
func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("prefix %q is IPv4 in IPv6", s)
	}
	return p, nil
}

// parsePrefixes parses the entries of a list that are not empty. It returns the readable ones together with the error.
func parsePrefixes(list []string) ([]netip.Prefix, error) { return parseEach(list, parsePrefix) }

// parseAddrs is prefixes for addresses.
func parseAddrs(list []string) ([]netip.Addr, error) { return parseEach(list, parseAddr) }

func parseEach[T comparable](list []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	var failed error
	seen := map[T]bool{} // an object's author decides how long its lists are
	for _, s := range list {
		if s == "" {
			continue
		}
		v, err := parse(s)
		if err != nil {
			failed = err
			continue
		}
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out, failed
}

// toJSON is JSON of what cannot fail to be encoded: strings, lists and maps of them.
func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func sortedCopy[T any](list []T, compare func(a, b T) int) []T {
	return slices.SortedFunc(slices.Values(list), compare)
}
