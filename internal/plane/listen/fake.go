package listen

import "net/netip"

// Fake is a Listener that receives what it is told.
type Fake struct{ *filtered }

var (
	_ Listener = (*Fake)(nil)
	_ Listener = (*Link)(nil)
)

// NewFake is a Fake that watches nothing yet.
func NewFake() *Fake { return &Fake{newFiltered()} }

// Watch replaces what is watched; a Fake is on no device.
func (f *Fake) Watch(own map[netip.Addr]string, _ []string) { f.watchOnly(own) }

// Say delivers a claim as the link would: a claim to an address that is not watched, or by the watched hardware
// address, is dropped.
func (f *Fake) Say(c Claim) { f.receiveClaim(c) }
