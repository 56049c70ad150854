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
	Sources      map[Source]SourcesTo
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

// State is everything a node must hold: every owner's Rows, merged. What changes comes in through Replace, which
// notes it for Followers.
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
	Sources       Table[Source, SourcesTo]
	SourceExempt  Table[netip.Addr, None]
	Datagrams     Table[Datagram, None]
	HealthChecks  Table[HealthCheck, HealthSpec]
	Steered       Table[Steered, None]
	Translated    Table[Egress, None]
	Forwarded     Table[Egress, None]
	Answered      Table[Egress, Announcement]

	journals [mostTables]interface{ count() int } // of each table, by its bit: see journalOf
}

// New is an empty State.
func New() *State {
	return &State{
		NB: Table[RowID, Row]{}, SB: Table[RowID, Row]{}, SetElems: Table[SetElem, None]{},
		OVSIDs: Table[string, string]{}, Ports: Table[Port, PortSpec]{},
		Addrs: Table[Addr, AddrSpec]{}, Routes: Table[RouteKey, Route]{}, Rules: Table[Rule, None]{}, Sysctls: Table[Sysctl, string]{},
		NFTChains: Table[NFTChain, NFTChainSpec]{}, NFTRules: Table[NFTRule, string]{}, NFTSets: Table[NFTSet, NFTSetSpec]{}, NFTElems: Table[NFTElem, string]{},
		Accepts: Table[Accept, None]{}, Flows: Table[Flow, string]{}, Announcements: Table[Announcement, None]{},
		Sources: Table[Source, SourcesTo]{}, SourceExempt: Table[netip.Addr, None]{},
		Datagrams: Table[Datagram, None]{}, HealthChecks: Table[HealthCheck, HealthSpec]{},
		Steered: Table[Steered, None]{}, Translated: Table[Egress, None]{}, Forwarded: Table[Egress, None]{},
		Answered: Table[Egress, Announcement]{},
	}
}

// Replace puts owner's new rows in place of its old ones. Either may be the zero Rows.
func (s *State) Replace(owner string, old, new *Rows) {
	s.replaceParts(owner, old, new)
	replaceRows(s, InNB, s.NB, owner, old.NB, new.NB)
	replaceRows(s, InSB, s.SB, owner, old.SB, new.SB)
	replace(s, InSetElems, s.SetElems, owner, old.SetElems, new.SetElems)
	replace(s, InOVSIDs, s.OVSIDs, owner, old.OVSIDs, new.OVSIDs)
	replace(s, InPorts, s.Ports, owner, old.Ports, new.Ports)
	replace(s, InAddrs, s.Addrs, owner, old.Addrs, new.Addrs)
	replace(s, InRoutes, s.Routes, owner, old.Routes, new.Routes)
	replace(s, InRules, s.Rules, owner, old.Rules, new.Rules)
	replace(s, InSysctls, s.Sysctls, owner, old.Sysctls, new.Sysctls)
	replace(s, InNFTChains, s.NFTChains, owner, old.NFTChains, new.NFTChains)
	replace(s, InNFTRules, s.NFTRules, owner, old.NFTRules, new.NFTRules)
	replace(s, InNFTSets, s.NFTSets, owner, old.NFTSets, new.NFTSets)
	replace(s, InNFTElems, s.NFTElems, owner, old.NFTElems, new.NFTElems)
	replace(s, InAccepts, s.Accepts, owner, old.Accepts, new.Accepts)
	replace(s, InFlows, s.Flows, owner, old.Flows, new.Flows)
	replace(s, InAnnouncements, s.Announcements, owner, old.Announcements, new.Announcements)
	replaceBy(journalOf[Source](s, InSources), s.Sources, owner, old.Sources, new.Sources, SourcesTo.equal)
	replace(s, InSourceExempt, s.SourceExempt, owner, old.SourceExempt, new.SourceExempt)
	replace(s, InDatagrams, s.Datagrams, owner, old.Datagrams, new.Datagrams)
	replace(s, InHealthChecks, s.HealthChecks, owner, old.HealthChecks, new.HealthChecks)
	replace(s, InSteered, s.Steered, owner, old.Steered, new.Steered)
	replace(s, InTranslated, s.Translated, owner, old.Translated, new.Translated)
	replace(s, InForwarded, s.Forwarded, owner, old.Forwarded, new.Forwarded)
	replace(s, InAnswered, s.Answered, owner, old.Answered, new.Answered)
}

func replace[K, V comparable](s *State, table Tables, t Table[K, V], owner string, old, new map[K]V) {
	replaceBy(journalOf[K](s, table), t, owner, old, new, Same)
}

func replaceRows(s *State, table Tables, t Table[RowID, Row], owner string, old, new map[RowID]Row) {
	replaceBy(journalOf[RowID](s, table), t, owner, old, new, EqualRows)
}

// replaceBy touches nothing that stays as it is.
func replaceBy[K comparable, V any](
	j *journal[K], t Table[K, V], owner string, old, new map[K]V, equal func(a, b V) bool,
) {
	for k := range old {
		if _, stays := new[k]; !stays {
			t.Drop(owner, k)
			j.note(k)
		}
	}
	for k, v := range new {
		if was, is := old[k]; !is || !equal(was, v) {
			t.Put(owner, k, v)
			j.note(k)
		}
	}
}

// Claim puts row at k of one of Rows' maps, which may be nil.
func Claim[K comparable, V any](m *map[K]V, k K, row V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = row
}
