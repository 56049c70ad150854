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
	// Datagrams are all translations of their From: entries with another one are flushed, since UDP does not end.
	Datagrams    map[Datagram]None
	HealthChecks map[HealthCheck]HealthSpec
	// Steered, Translated, Forwarded and Answered are applied to nothing: they are what the node tells of the rows
	// beside them, once those are in force. Forwarded are addresses whose packets go to another holder where this node
	// has no connection of theirs; Answered are those that the node answers for, and how it announces them.
	Steered    map[Steered]None
	Translated map[Egress]None
	Forwarded  map[Egress]None
	Answered   map[Egress]Announcement

	parts []part
}

// State is everything a node must hold: every owner's Rows, merged. What plans grow by comes in through Replace: planes may keep to what it
// noted.
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
	Datagrams     Table[Datagram, None]
	HealthChecks  Table[HealthCheck, HealthSpec]
	Steered       Table[Steered, None]
	Translated    Table[Egress, None]
	Forwarded     Table[Egress, None]
	Answered      Table[Egress, Announcement]

	changed Tables
	elems   changeLog[SetElem]
	sources changeLog[Source]
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
		Datagrams: Table[Datagram, None]{}, HealthChecks: Table[HealthCheck, HealthSpec]{},
		Steered: Table[Steered, None]{}, Translated: Table[Egress, None]{}, Forwarded: Table[Egress, None]{},
		Answered: Table[Egress, Announcement]{},
	}
}

// Replace puts owner's new rows in place of its old ones. Either may be the zero Rows.
func (s *State) Replace(owner string, old, new *Rows) {
	s.replaceParts(owner, old, new)
	s.changed |= replace(InNB, s.NB, owner, old.NB, new.NB)
	s.changed |= replace(InSB, s.SB, owner, old.SB, new.SB)
	note(&s.elems, old.SetElems, new.SetElems)
	s.changed |= replace(InSetElems, s.SetElems, owner, old.SetElems, new.SetElems)
	s.changed |= replace(InOVSIDs, s.OVSIDs, owner, old.OVSIDs, new.OVSIDs)
	s.changed |= replace(InPorts, s.Ports, owner, old.Ports, new.Ports)
	s.changed |= replace(InAddrs, s.Addrs, owner, old.Addrs, new.Addrs)
	s.changed |= replace(InRoutes, s.Routes, owner, old.Routes, new.Routes)
	s.changed |= replace(InRules, s.Rules, owner, old.Rules, new.Rules)
	s.changed |= replace(InSysctls, s.Sysctls, owner, old.Sysctls, new.Sysctls)
	s.changed |= replace(InNFTChains, s.NFTChains, owner, old.NFTChains, new.NFTChains)
	s.changed |= replace(InNFTRules, s.NFTRules, owner, old.NFTRules, new.NFTRules)
	s.changed |= replace(InNFTSets, s.NFTSets, owner, old.NFTSets, new.NFTSets)
	s.changed |= replace(InNFTElems, s.NFTElems, owner, old.NFTElems, new.NFTElems)
	s.changed |= replace(InAccepts, s.Accepts, owner, old.Accepts, new.Accepts)
	s.changed |= replace(InFlows, s.Flows, owner, old.Flows, new.Flows)
	s.changed |= replace(InAnnouncements, s.Announcements, owner, old.Announcements, new.Announcements)
	note(&s.sources, old.Sources, new.Sources)
	s.changed |= replace(InSources, s.Sources, owner, old.Sources, new.Sources)
	s.changed |= replace(InSourceExempt, s.SourceExempt, owner, old.SourceExempt, new.SourceExempt)
	s.changed |= replace(InDatagrams, s.Datagrams, owner, old.Datagrams, new.Datagrams)
	s.changed |= replace(InHealthChecks, s.HealthChecks, owner, old.HealthChecks, new.HealthChecks)
	s.changed |= replace(InSteered, s.Steered, owner, old.Steered, new.Steered)
	s.changed |= replace(InTranslated, s.Translated, owner, old.Translated, new.Translated)
	s.changed |= replace(InForwarded, s.Forwarded, owner, old.Forwarded, new.Forwarded)
	s.changed |= replace(InAnswered, s.Answered, owner, old.Answered, new.Answered)
}

// replace answers with table if there was anything to do.
func replace[K comparable, V any](table Tables, t Table[K, V], owner string, old, new map[K]V) Tables {
	if len(old)+len(new) == 0 {
		return 0
	}
	for k := range old {
		if _, ok := new[k]; !ok {
			t.Drop(owner, k)
		}
	}
	for k, v := range new {
		t.Put(owner, k, v)
	}
	return table
}

// TakeChanged are the tables that may have changed since it was last asked.
func (s *State) TakeChanged() Tables {
	changed := s.changed
	s.changed = 0
	return changed
}

// Claim puts row at k of one of Rows' maps, which may be nil.
func Claim[K comparable, V any](m *map[K]V, k K, row V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = row
}
