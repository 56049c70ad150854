package world

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// ParseClusterSubnets reads "10.244.0.0/16/24,fd00:10:244::/48/64": each a range and the length of the subnets that
// nodes get of it. Without a length it is 24 for IPv4 and 64 for IPv6.
func ParseClusterSubnets(s string) ([]ClusterSubnet, error) {
	var out []ClusterSubnet
	for _, part := range splitFields(s) {
		c, err := parseClusterSubnet(part)
		if err != nil {
			return nil, fmt.Errorf("cluster subnet %q: %w; write it as 10.244.0.0/16/24", part, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no cluster subnet: give at least one, such as 10.244.0.0/16/24")
	}
	return out, nil
}

func parseClusterSubnet(s string) (ClusterSubnet, error) {
	cidr, length, given := s, "", false
	if i := strings.LastIndexByte(s, '/'); strings.Count(s, "/") == 2 {
		cidr, length, given = s[:i], s[i+1:], true
	}
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ClusterSubnet{}, err
	}
	c := ClusterSubnet{CIDR: p.Masked(), NodeLen: [...]int{24, 64}[FamilyOf(p.Addr())]}
	if given {
		if c.NodeLen, err = strconv.Atoi(length); err != nil {
			return ClusterSubnet{}, err
		}
	}
	// A node needs its network address, the gateway, the management port and at least one pod.
	if c.NodeLen < p.Bits() || c.NodeLen > p.Addr().BitLen()-3 {
		return ClusterSubnet{}, fmt.Errorf("a node's part of %d bits is no usable subnet of it", c.NodeLen)
	}
	return c, nil
}

// ParseSubnets reads "10.96.0.0/16,fd00:10:96::/112".
func ParseSubnets(s string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, part := range splitFields(s) {
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("subnet %q: %w; write it as 10.96.0.0/16", part, err)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func splitFields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
