package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Source is a pod whose connections a router of this node, or its host's kernel, translates.
type Source struct {
	Router string // logical router's name, or HostKernel
	Pod    netip.Addr
}

// Masquerade is a router of a network beside the default one, and the address that it gives what pods send. Another
// router, behind it, translates that address to the one that the outside sees.
type Masquerade struct {
	Router string
	IP     netip.Addr
	Behind string
}

// Everywhere is, in SourceTo, everything outside the cluster: such a source needs no entry of State.Destinations.
const Everywhere = "everywhere"

// SourceTo is the source that a pod's connections to some destinations must have.
type SourceTo struct {
	To string // Everywhere, or a key of State.Destinations
	IP netip.Addr
	// Mark is that of the connections, in the host's kernel, where they are told by it; else 0. With IP zero they may
	// have any source.
	Mark uint32
}

// SourcesTo are a pod's, disjoint by destination. Connections to others have the node's address.
type SourcesTo []SourceTo

// AddSource claims the source that a pod's connections must have, beside those to other destinations.
func (r *Rows) AddSource(s Source, to SourceTo) { Add(&r.Sources, s, append(r.Sources[s], to)) }

// SourceOf is the source that a pod's connections to an address must have, and whether there is such.
func (s *State) SourceOf(sources SourcesTo, dst netip.Addr) (source SourceTo, ok bool) {
	for _, t := range sources {
		if to, is := s.Destinations.Get(t.To); t.To == Everywhere || is && to.Contains(dst) {
			return t, true
		}
	}
	return SourceTo{}, false
}

func (s SourcesTo) equalSources(o SourcesTo) bool { return slices.Equal(s, o) }

func (s SourcesTo) String() string {
	var l []string
	for _, t := range s {
		text := "any"
		if t.IP.IsValid() {
			text = t.IP.String()
		}
		if t.Mark != 0 {
			text += fmt.Sprintf(" mark %#x", t.Mark)
		}
		if t.To != Everywhere {
			text += " to " + t.To
		}
		l = append(l, text)
	}
	return strings.Join(l, " and ")
}
