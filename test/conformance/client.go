package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Networks for documentation (RFC 5737, RFC 3849), which nobody has: the client's and that of the load balancers'
// addresses.
const (
	client4, client6     = "198.51.100.1", "2001:db8:100::1"
	balanced4, balanced6 = "203.0.113.%d", "2001:db8:113::%d"
)

// clientAddress is the client's address in the family of ip. It is in none of the nodes' networks: specs about source
// addresses tell a client's from a node's by that.
func clientAddress(ip netip.Addr) netip.Addr {
	if ip.Is4() {
		return netip.MustParseAddr(client4)
	}
	return netip.MustParseAddr(client6)
}

// address is the load balancers' address with this number; after 250 they begin anew.
func address(family corev1.IPFamily, number int) netip.Addr {
	pattern := balanced4
	if family == corev1.IPv6Protocol {
		pattern = balanced6
	}
	return netip.MustParseAddr(fmt.Sprintf(pattern, (number-1)%250+1))
}

// ours says whether an address is one of the load balancers'.
func ours(ip netip.Addr) bool {
	if ip.Is4() {
		return netip.MustParsePrefix("203.0.113.0/24").Contains(ip)
	}
	return netip.MustParsePrefix("2001:db8:113::/64").Contains(ip)
}

// wire gives the client its addresses and the fabric the way to them, and lets the client spread connections over nodes
// by their ports.
func (b *balancer) wire(ctx context.Context) error {
	fabric := b.cluster.FabricNetns()
	for _, via := range b.cluster.ExternalHosts()[0].IPs {
		own := clientAddress(via)
		if _, err := b.ip(ctx, own, "address replace %s/%d dev lo", own, own.BitLen()); err != nil {
			return err
		}
		if _, err := b.cluster.ExecIn(ctx, fabric, "ip", "route", "replace", own.String(), "via",
			via.String()); err != nil {
			return err
		}
	}
	if _, err := b.cluster.ExecIn(ctx, fabric, "sysctl", "-qw", "net.ipv4.ip_forward=1",
		"net.ipv6.conf.all.forwarding=1", "net.ipv4.conf.all.send_redirects=0"); err != nil {
		return err
	}
	_, err := b.cluster.ExecIn(ctx, b.host, "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1",
		"net.ipv6.fib_multipath_hash_policy=1")
	return err
}

// ip runs ip(8) at the client, in the family of the address.
func (b *balancer) ip(ctx context.Context, family netip.Addr, format string, args ...any) ([]byte, error) {
	command := []string{"ip", "-4"}
	if family.Is6() {
		command[1] = "-6"
	}
	return b.cluster.ExecIn(ctx, b.host, append(command, strings.Fields(fmt.Sprintf(format, args...))...)...)
}
