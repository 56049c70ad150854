package listen

import "net/netip"

// Fake is an Ear that hears what it is told.
type Fake struct{ *ears }

var (
	_ Ear = (*Fake)(nil)
	_ Ear = (*Link)(nil)
)

// NewFake is a Fake that watches nothing yet.
func NewFake() *Fake { return &Fake{newEars()} }

// Watch replaces what is watched; a Fake is on no device.
func (f *Fake) Watch(own map[netip.Addr]string, _ []string) { f.watch(own) }

// Say is what the link would have heard: what is not watched, or claims the watched hardware address, is dropped.
func (f *Fake) Say(c Claim) { f.hear(c) }
