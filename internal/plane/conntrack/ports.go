package conntrack

import "net/netip"

// PortsPerRemote is how many ports a translation may give to connections with one remote address, port and protocol:
// 1024 to 65535 (Linux, nf_nat_l4proto_unique_tuple; OVS' userspace datapath has the same).
const PortsPerRemote = 65535 - 1024 + 1

// remote is what connections need ports of their own for.
type remote struct {
	source netip.Addr
	proto  uint8
	to     netip.Addr
	port   uint16
}

// CountPorts returns, by the address that connections are translated to, how many of its ports are used for the remote
// address, port and protocol that needs most. Each remote may use all ports again.
func CountPorts(entries []Entry) map[netip.Addr]int {
	byRemote, most := map[remote]int{}, map[netip.Addr]int{}
	for _, e := range entries {
		if !e.Translated() || e.Proto == protoICMP || e.Proto == protoICMPv6 {
			continue
		}
		r := remote{e.Source(), e.Proto, e.Orig.Dst, e.Orig.DstPort}
		byRemote[r]++
		most[r.source] = max(most[r.source], byRemote[r])
	}
	return most
}
