package plan

import "net/netip"

// Rows is what one owner wants: plain maps, written by a feature.
type Rows struct {
	NB            map[RowID]Row
	SB            map[RowID]Row
	SetElems      map[SetElem]None
	OVSIDs        map[string]string // Open_vSwitch external_ids
	Ports         map[Port]PortSpec
	Addrs         map[Addr]AddrSpec
	Routes        map[RouteKey]Route
	Rules         map[Rule]None
	Sysctls       map[Sysctl]string
	NFTChains     map[NFTChain]NFTChainSpec
	NFTRules      map[NFTRule]string
	NFTSets       map[NFTSet]NFTSetSpec
	NFTElems      map[NFTElem]string
	Accepts       map[Accept]None
	Flows         map[Flow]string
	Announcements map[Announcement]None
	// Sources are the sources that connections of pods have on this node's gateway router. Entries of connections that have
	// another one are flushed when this changes, but to SourceExempt, which keep the node's address.
	Sources      map[Source]netip.Addr
	SourceExempt map[netip.Addr]None
}

// State is everything a node must hold: every owner's Rows, merged.
type State struct {
	NB            Table[RowID, Row]
	SB            Table[RowID, Row]
	SetElems      Table[SetElem, None]
	OVSIDs        Table[string, string]
	Ports         Table[Port, PortSpec]
	Addrs         Table[Addr, AddrSpec]
	Routes        Table[RouteKey, Route]
	Rules         Table[Rule, None]
	Sysctls       Table[Sysctl, string]
	NFTChains     Table[NFTChain, NFTChainSpec]
	NFTRules      Table[NFTRule, string]
	NFTSets       Table[NFTSet, NFTSetSpec]
	NFTElems      Table[NFTElem, string]
	Accepts       Table[Accept, None]
	Flows         Table[Flow, string]
	Announcements Table[Announcement, None]
	Sources       Table[Source, netip.Addr]
	SourceExempt  Table[netip.Addr, None]
}

// New is an empty State.
func New() *State {
	return &State{
		NB: Table[RowID, Row]{}, SB: Table[RowID, Row]{}, SetElems: Table[SetElem, None]{},
		OVSIDs: Table[string, string]{}, Ports: Table[Port, PortSpec]{},
		Addrs: Table[Addr, AddrSpec]{}, Routes: Table[RouteKey, Route]{}, Rules: Table[Rule, None]{}, Sysctls: Table[Sysctl, string]{},
		NFTChains: Table[NFTChain, NFTChainSpec]{}, NFTRules: Table[NFTRule, string]{}, NFTSets: Table[NFTSet, NFTSetSpec]{}, NFTElems: Table[NFTElem, string]{},
		Accepts: Table[Accept, None]{}, Flows: Table[Flow, string]{}, Announcements: Table[Announcement, None]{},
		Sources: Table[Source, netip.Addr]{}, SourceExempt: Table[netip.Addr, None]{},
	}
}

// Replace puts owner's new rows in place of its old ones. Either may be the zero Rows.
func (s *State) Replace(owner string, old, new *Rows) {
	replace(s.NB, owner, old.NB, new.NB)
	replace(s.SB, owner, old.SB, new.SB)
	replace(s.SetElems, owner, old.SetElems, new.SetElems)
	replace(s.OVSIDs, owner, old.OVSIDs, new.OVSIDs)
	replace(s.Ports, owner, old.Ports, new.Ports)
	replace(s.Addrs, owner, old.Addrs, new.Addrs)
	replace(s.Routes, owner, old.Routes, new.Routes)
	replace(s.Rules, owner, old.Rules, new.Rules)
	replace(s.Sysctls, owner, old.Sysctls, new.Sysctls)
	replace(s.NFTChains, owner, old.NFTChains, new.NFTChains)
	replace(s.NFTRules, owner, old.NFTRules, new.NFTRules)
	replace(s.NFTSets, owner, old.NFTSets, new.NFTSets)
	replace(s.NFTElems, owner, old.NFTElems, new.NFTElems)
	replace(s.Accepts, owner, old.Accepts, new.Accepts)
	replace(s.Flows, owner, old.Flows, new.Flows)
	replace(s.Announcements, owner, old.Announcements, new.Announcements)
	replace(s.Sources, owner, old.Sources, new.Sources)
	replace(s.SourceExempt, owner, old.SourceExempt, new.SourceExempt)
}

func replace[K comparable, V any](t Table[K, V], owner string, old, new map[K]V) {
	for k := range old {
		if _, ok := new[k]; !ok {
			t.Drop(owner, k)
		}
	}
	for k, v := range new {
		t.Put(owner, k, v)
	}
}

// Claim puts row at k of one of Rows' maps, which may be nil.
func Claim[K comparable, V any](m *map[K]V, k K, row V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = row
}
