package plan

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/destinations"
	"github.com/egret-net/egret/internal/ref"
)

// Rows is what one owner wants: plain maps, written by a feature.
type Rows struct {
	NB            map[RowID]Row
	SB            map[RowID]Row
	SetElems      map[SetElem]None
	OVSIDs        map[string]string // Open_vSwitch external_ids
	Ports         map[Port]PortSpec
	Addrs         map[Addr]AddrSpec
	ReleasedAddrs map[netip.Addr]None // early planes remove these from all links
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
	// Sources are the sources that connections of pods have on this node's gateway router. Entries of connections that
	// have another one are flushed when this changes, but to SourceExempt, which keep the node's address.
	Sources      map[Source]SourcesTo
	SourceExempt map[netip.Addr]None
	// Masquerades are the routers whose connections pass another router of this node, which translates them again.
	Masquerades map[Masquerade]None
	// Destinations are what Sources name. They are not part of Sources, so that one more network does not change each
	// pod's row.
	Destinations map[string]destinations.Set
	// Datagrams are all translations of their From: entries with another one are flushed, since nothing else ends them.
	Datagrams    map[Datagram]None
	HealthChecks map[HealthCheck]HealthSpec
	// Steered, Translated, Forwarded and Answered are applied to nothing: they are what the node tells of the rows
	// beside them, once those are in force. Forwarded are addresses whose packets go to another holder where this node
	// has no connection of theirs; Answered are those that the node answers for, and how it announces them.
	Steered    map[Steered]Ahead
	Translated map[Egress]ref.Since // since the node was given the address, as far as the status says
	Forwarded  map[Egress]None
	Answered   map[Egress]Announcement
	// Problems are applied to nothing, too.
	Problems map[Problem]None

	parts []part
}

// State is everything a node must hold: every owner's Rows, merged. Changes come in through Replace, which notes them
// for Followers.
type State struct {
	NB            Table[RowID, Row]
	SB            Table[RowID, Row]
	SetElems      Table[SetElem, None]
	OVSIDs        Table[string, string]
	Ports         Table[Port, PortSpec]
	Addrs         Table[Addr, AddrSpec]
	ReleasedAddrs Table[netip.Addr, None]
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
	Masquerades   Table[Masquerade, None]
	Destinations  Table[string, destinations.Set]
	Datagrams     Table[Datagram, None]
	HealthChecks  Table[HealthCheck, HealthSpec]
	Steered       Table[Steered, Ahead]
	Translated    Table[Egress, ref.Since]
	Forwarded     Table[Egress, None]
	Answered      Table[Egress, Announcement]
	Problems      Table[Problem, None]

	journals [mostTables]interface{ countChanges() int } // of each table, by its bit: see journalOf
}

// New is an empty State.
func New() *State {
	return &State{
		NB: Table[RowID, Row]{}, SB: Table[RowID, Row]{}, SetElems: Table[SetElem, None]{},
		OVSIDs: Table[string, string]{}, Ports: Table[Port, PortSpec]{},
		Addrs: Table[Addr, AddrSpec]{}, ReleasedAddrs: Table[netip.Addr, None]{},
		Routes: Table[RouteKey, Route]{}, Rules: Table[Rule, None]{},
		Sysctls:   Table[Sysctl, string]{},
		NFTChains: Table[NFTChain, NFTChainSpec]{}, NFTRules: Table[NFTRule, string]{}, NFTSets: Table[NFTSet,
			NFTSetSpec]{}, NFTElems: Table[NFTElem, string]{},
		Accepts: Table[Accept, None]{}, Flows: Table[Flow, string]{}, Announcements: Table[Announcement, None]{},
		Sources: Table[Source, SourcesTo]{}, SourceExempt: Table[netip.Addr, None]{},
		Masquerades: Table[Masquerade, None]{}, Destinations: Table[string, destinations.Set]{},
		Datagrams: Table[Datagram, None]{}, HealthChecks: Table[HealthCheck, HealthSpec]{},
		Steered: Table[Steered, Ahead]{}, Translated: Table[Egress, ref.Since]{}, Forwarded: Table[Egress, None]{},
		Answered: Table[Egress, Announcement]{}, Problems: Table[Problem, None]{},
	}
}

// Snapshot is a copy that does not change with s. It has no journal: a Follower of it takes all rows.
func (s *State) Snapshot() *State {
	return &State{
		NB: maps.Clone(s.NB), SB: maps.Clone(s.SB), SetElems: maps.Clone(s.SetElems), OVSIDs: maps.Clone(s.OVSIDs),
		Ports: maps.Clone(s.Ports), Addrs: maps.Clone(s.Addrs),
		ReleasedAddrs: maps.Clone(s.ReleasedAddrs), Routes: maps.Clone(s.Routes),
		Rules: maps.Clone(s.Rules), Sysctls: maps.Clone(s.Sysctls), NFTChains: maps.Clone(s.NFTChains),
		NFTRules: maps.Clone(s.NFTRules), NFTSets: maps.Clone(s.NFTSets), NFTElems: maps.Clone(s.NFTElems),
		Accepts: maps.Clone(s.Accepts), Flows: maps.Clone(s.Flows), Announcements: maps.Clone(s.Announcements),
		Sources: maps.Clone(s.Sources), SourceExempt: maps.Clone(s.SourceExempt),
		Masquerades: maps.Clone(s.Masquerades), Destinations: maps.Clone(s.Destinations),
		Datagrams: maps.Clone(s.Datagrams), HealthChecks: maps.Clone(s.HealthChecks), Steered: maps.Clone(s.Steered),
		Translated: maps.Clone(s.Translated), Forwarded: maps.Clone(s.Forwarded), Answered: maps.Clone(s.Answered),
		Problems: maps.Clone(s.Problems),
	}
}

// Replace puts owner's new rows in place of its old ones. Either may be the zero Rows.
func (s *State) Replace(owner Owner, old, new *Rows) {
	if !old.IsEmpty() || !new.IsEmpty() {
		s.replaceRowsOf(&claimant{owner: owner}, old, new)
	}
}

// IsEmpty says whether an owner wants nothing, on behalf of others neither, as most pods of other nodes.
func (r *Rows) IsEmpty() bool {
	n := len(r.NB) + len(r.SB) + len(r.SetElems) + len(r.OVSIDs) + len(r.Ports) + len(r.Addrs) + len(r.Routes) +
		len(r.Rules) + len(r.Sysctls) + len(r.NFTChains) + len(r.NFTRules) + len(r.NFTSets) + len(r.NFTElems) +
		len(r.Accepts) + len(r.Flows) + len(r.Announcements) + len(r.Sources) + len(r.SourceExempt) +
		len(r.Masquerades) + len(r.Destinations) + len(r.Datagrams) + len(r.HealthChecks) + len(r.Steered) +
		len(r.Translated) + len(r.Forwarded) + len(r.Answered) + len(r.Problems) + len(r.ReleasedAddrs)
	return n == 0 && !slices.ContainsFunc(r.parts, func(p part) bool { return !p.rows.IsEmpty() })
}

func (s *State) replaceRowsOf(by *claimant, old, new *Rows) {
	s.replaceParts(by, old, new)
	replaceRows(s, InNB, s.NB, by, old.NB, new.NB)
	replaceRows(s, InSB, s.SB, by, old.SB, new.SB)
	replaceInTable(s, InSetElems, s.SetElems, by, old.SetElems, new.SetElems)
	replaceInTable(s, InOVSIDs, s.OVSIDs, by, old.OVSIDs, new.OVSIDs)
	replaceInTable(s, InPorts, s.Ports, by, old.Ports, new.Ports)
	replaceInTable(s, InAddrs, s.Addrs, by, old.Addrs, new.Addrs)
	replaceInTable(s, InReleasedAddrs, s.ReleasedAddrs, by, old.ReleasedAddrs, new.ReleasedAddrs)
	replaceInTable(s, InRoutes, s.Routes, by, old.Routes, new.Routes)
	replaceInTable(s, InRules, s.Rules, by, old.Rules, new.Rules)
	replaceInTable(s, InSysctls, s.Sysctls, by, old.Sysctls, new.Sysctls)
	replaceInTable(s, InNFTChains, s.NFTChains, by, old.NFTChains, new.NFTChains)
	replaceInTable(s, InNFTRules, s.NFTRules, by, old.NFTRules, new.NFTRules)
	replaceInTable(s, InNFTSets, s.NFTSets, by, old.NFTSets, new.NFTSets)
	replaceInTable(s, InNFTElems, s.NFTElems, by, old.NFTElems, new.NFTElems)
	replaceInTable(s, InAccepts, s.Accepts, by, old.Accepts, new.Accepts)
	replaceInTable(s, InFlows, s.Flows, by, old.Flows, new.Flows)
	replaceInTable(s, InAnnouncements, s.Announcements, by, old.Announcements, new.Announcements)
	replaceBy(journalOf[Source](s, InSources), s.Sources, by, old.Sources, new.Sources, SourcesTo.equalSources)
	replaceInTable(s, InSourceExempt, s.SourceExempt, by, old.SourceExempt, new.SourceExempt)
	replaceInTable(s, InMasquerades, s.Masquerades, by, old.Masquerades, new.Masquerades)
	replaceBy(journalOf[string](s, InDestinations), s.Destinations, by, old.Destinations, new.Destinations,
		destinations.Set.Equal)
	replaceInTable(s, InDatagrams, s.Datagrams, by, old.Datagrams, new.Datagrams)
	replaceInTable(s, InHealthChecks, s.HealthChecks, by, old.HealthChecks, new.HealthChecks)
	replaceInTable(s, InSteered, s.Steered, by, old.Steered, new.Steered)
	replaceInTable(s, InTranslated, s.Translated, by, old.Translated, new.Translated)
	replaceInTable(s, InForwarded, s.Forwarded, by, old.Forwarded, new.Forwarded)
	replaceInTable(s, InAnswered, s.Answered, by, old.Answered, new.Answered)
	replaceInTable(s, InProblems, s.Problems, by, old.Problems, new.Problems)
}

func replaceInTable[K, V comparable](s *State, table Tables, t Table[K, V], by *claimant, old, new map[K]V) {
	replaceBy(journalOf[K](s, table), t, by, old, new, Same)
}

func replaceRows(s *State, table Tables, t Table[RowID, Row], by *claimant, old, new map[RowID]Row) {
	replaceBy(journalOf[RowID](s, table), t, by, old, new, EqualRows)
}

// replaceBy touches nothing that stays as it is.
func replaceBy[K comparable, V any](
	j *journal[K], t Table[K, V], by *claimant, old, new map[K]V, equal func(a, b V) bool,
) {
	for k := range old {
		if _, stays := new[k]; !stays {
			t.dropClaim(by, k)
			j.noteChange(k)
		}
	}
	for k, v := range new {
		if was, is := old[k]; !is || !equal(was, v) {
			t.putClaim(by, k, v)
			j.noteChange(k)
		}
	}
}

// Add puts row at k of one of Rows' maps, which may be nil.
func Add[K comparable, V any](m *map[K]V, k K, row V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = row
}
