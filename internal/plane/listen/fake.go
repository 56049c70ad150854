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
func (f *Fake) Watch(own map[netip.Addr]string, _ []string) { f.watch(own) }

// Say is what the link would have received: what is not watched, or claims the watched hardware address, is dropped.
func (f *Fake) Say(c Claim) { f.receive(c) }
