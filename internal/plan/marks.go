package plan

// Marks of packets and connections of pods in the host's kernel that are given a source there, beside the node's.
const (
	// MarkEgress is what they all begin with, under MarkEgressMask.
	MarkEgress     = 0x0e000000
	MarkEgressMask = 0xfe000000

	// markEgressLink, with a link's index below it, is of packets for egress IPs on that link.
	markEgressLink = 0x0e000000
	// markEgressService, with a routing table below it, is of packets of pods behind an EgressService.
	markEgressService = 0x0f000000
	// markMasquerade is beside it of those that have the address of the link that they leave by.
	markMasquerade = 0x00800000
)

// LinkMark is the mark of packets for egress IPs on the link of that index.
func LinkMark(index int) uint32 { return markEgressLink | uint32(index) }

// MostTable is the highest routing table that a mark has room for.
const MostTable = 1<<21 - 1

// EgressServiceMark is the mark of packets of pods behind EgressServices whose network is that routing table; 0: that
// have none. masquerade: the packets have the address of the link that they leave by. Bits 14 and 15 are kube-proxy's
// (0x4000 and 0x8000) and are left out: table 16384 is 0x10000.
func EgressServiceMark(table int, masquerade bool) uint32 {
	const low = 14
	mark := markEgressService | uint32(table)&(1<<low-1) | uint32(table)>>low<<(low+2)
	if masquerade {
		mark |= markMasquerade
	}
	return mark
}
