package holder

import (
	"maps"
	"net/netip"
	"slices"
)

const (
	DefendEvery  = defendEvery
	CorrectEvery = correctEvery
	ConflictFor  = conflictFor
	LookEvery    = lookEvery
	NewsWait     = newsWait
	RivalsKept   = rivalsKept
	UnsteeredFor = unsteeredFor
	UnsureFor    = unsureFor
	SentALook    = sentALook
)

var NodeAt = nodeAt

// Rivals are the machines that are remembered to claim an address.
func (m *Machine) Rivals(ip netip.Addr) []string {
	return slices.Collect(maps.Keys(m.addresses[ip].rivals))
}
