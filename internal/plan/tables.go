package plan

// Tables is a set of a State's tables.
type Tables uint32

// mostTables is how many bits there are.
const mostTables = 32

// One bit a table.
const (
	InNB Tables = 1 << iota
	InSB
	InSetElems
	InOVSIDs
	InPorts
	InAddrs
	InRoutes
	InRules
	InSysctls
	InNFTChains
	InNFTRules
	InNFTSets
	InNFTElems
	InAccepts
	InFlows
	InAnnouncements
	InSources
	InSourceExempt
	InMasquerades
	InDestinations
	InDatagrams
	InHealthChecks
	InSteered
	InTranslated
	InForwarded
	InAnswered
	InProblems
	InReleasedAddrs
)
