package service

import (
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// LocalOnly is the address at which a node's switch balances to its own pods only, by node port: the way that
// connections from outside take, with their source, in local gateway mode (seed external-traffic-policy.md).
func LocalOnly(f world.Family) netip.Addr {
	return [...]netip.Addr{netip.AddrFrom4([4]byte{169, 254, 169, 3}), netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x69,
		15: 3})}[f]
}
