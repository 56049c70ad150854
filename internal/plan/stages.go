package plan

import "fmt"

// Stage is one priority of one table of the gateway bridge (breth0), for flows of one purpose and of one feature.
// Flows are claimed by stage, so that no two features meet in one table at one priority, where OpenFlow leaves it
// open which of two overlapping flows is taken.
type Stage uint8

// LearntCookie marks the flows that switches make themselves, in AnswerSilenced: `ovs-ofctl dump-flows breth0
// cookie=0xdeff106/-1`. They are of no plan, and end by themselves.
const LearntCookie = 0xdeff106

// The tables are entered from 0: 1 is for what comes in by the uplink, with what conntrack knows of it; the others
// each serve the flow that leads there.
const (
	MuteAddress Stage = iota
	LeaseGate
	AnswerAsNode
	AnswerUnleased
	Neighbours
	ForgedTunnel
	HostAnswer
	AsNode
	FilteredAsNode
	Untranslated
	Outbound
	Inbound
	Announced
	FramesToNode
	OtherFrames

	ServiceDatagrams
	ReplyFragment
	ReplySize
	Established
	ServiceNew
	ServiceFragment
	ServiceRefused
	ForwardedBack
	Forward
	HostNew
	Multicast

	CopyToOVN

	DrawnHere
	DrawnElsewhere

	AnswerLeased
	AnswerSilenced
	AnswerOpen

	ClaimOwn
	ClaimReceived

	FilteredReply
	FilteredDrop

	ReplyTooBig
	ReplyFits

	UntranslatedStill
	LetOut

	stages
)

type stage struct {
	table, priority  int
	feature, purpose string
}

// registry has the stages of a table together, in the order in which the switch tries them.
var registry = [stages]stage{
	MuteAddress:    {0, 120, "egressip", "drop ARP and ND for an egress IP that another node, or a link, answers for"},
	LeaseGate:      {0, 119, "egressip", "lead ARP and ND about an egress IP that is held here to tables 4 and 5"},
	AnswerAsNode:   {0, 118, "gateway", "let OVN answer ARP and ND for the node's own addresses"},
	AnswerUnleased: {0, 117, "gateway", "drop OVN's other answers: an egress IP's lease is not there yet"},
	Neighbours:     {0, 110, "gateway", "let ND pass, which belongs to no connection"},
	ForgedTunnel:   {0, 107, "gateway", "drop what pods send to the port of nodes' tunnels"},
	HostAnswer:     {0, 106, "service", "give the host pods' answers to what it sent to the gateway router"},
	AsNode:         {0, 105, "gateway", "translate what is marked 1008 to the node's address"},
	FilteredAsNode: {0, 104, "egressip", "lead packets of selected pods that have the node's address to table 6"},
	Untranslated:   {0, 103, "gateway", "drop what has a pod's address as source"},
	Outbound:       {0, 100, "gateway", "let out, and remember in ct_mark whose the connection is"},
	Inbound:        {0, 50, "gateway", "ask conntrack, and go on in table 1"},
	Announced:      {0, 11, "gateway", "give ARP for all to host and OVN, each announcement anew (plan.ARPAnew)"},
	FramesToNode:   {0, 10, "gateway", "give frames for the node's hardware address to host and OVN"},
	OtherFrames:    {0, 9, "gateway", "let pass what is not IP: ARP above all"},

	ServiceDatagrams: {1, 110, "service", "choose anew for UDP to a Service, whose connections never end"},
	ReplyFragment:    {1, 106, "egressip", "give the host fragments of replies to an egress IP, to put them together"},
	ReplySize:        {1, 105, "egressip", "ask whether pods' links carry a reply to an egress IP, and go on in table 8"},
	Established:      {1, 100, "gateway", "give packets to the side that the connection is of"},
	ServiceNew:       {1, 50, "service", "give a new connection to a Service to its side"},
	ServiceFragment:  {1, 45, "service", "give the host fragments to a Service's address, to put them together"},
	ServiceRefused:   {1, 40, "service", "drop clients outside of spec.loadBalancerSourceRanges"},
	ForwardedBack:    {1, 21, "egress", "drop what the other holder of an address forwarded"},
	Forward:          {1, 20, "egress", "forward what is of no connection here to the other holder of an address"},
	HostNew:          {1, 10, "gateway", "give new connections to the host's addresses, and to pods, to the host"},
	Multicast:        {1, 9, "gateway", "give broadcast and multicast to the host"},

	CopyToOVN: {2, 10, "gateway", "copy to OVN; a flow of its own, for the patch port may not be there yet"},

	DrawnHere:      {3, 50, "service", "give a connection to the endpoint of this host that was drawn for it"},
	DrawnElsewhere: {3, 40, "service", "give it to OVN, for an endpoint elsewhere was drawn"},

	AnswerLeased:   {4, 20, "egressip", "let OVN answer while the agent renews the lease"},
	AnswerSilenced: {4, 10, "egressip", "drop answers for an address that another machine announces; learnt"},
	AnswerOpen:     {4, 0, "egressip", "let OVN answer: nobody else announces the address"},

	ClaimOwn:      {5, 20, "egressip", "ignore announcements of this node's own that come back"},
	ClaimReceived: {5, 10, "egressip", "learn which address another machine announces"},

	FilteredReply: {6, 10, "egressip", "let out what answers a connection from outside to a node port"},
	FilteredDrop:  {6, 0, "egressip", "drop the rest"},

	ReplyTooBig: {8, 10, "egressip", "give the host what is larger than pods' links carry, to cut it or to answer"},
	ReplyFits:   {8, 0, "egressip", "give the rest to OVN"},

	UntranslatedStill: {9, 10, "gateway", "drop fragments that OVS in userspace puts among other packets (plan.Leaves)"},
	LetOut:            {9, 0, "gateway", "let out the rest"},
}

// Stages are all there are.
func Stages() []Stage {
	out := make([]Stage, stages)
	for i := range out {
		out[i] = Stage(i)
	}
	return out
}

// StageAt is the stage of that table and priority, if there is one.
func StageAt(table, priority int) (Stage, bool) {
	for i, s := range registry {
		if s.table == table && s.priority == priority {
			return Stage(i), true
		}
	}
	return 0, false
}

// Table is the number of the stage's table, to which other flows resubmit.
func (s Stage) Table() int { return registry[s].table }

// Priority is the stage's priority in its table.
func (s Stage) Priority() int { return registry[s].priority }

// Feature is the one feature that has flows in the stage.
func (s Stage) Feature() string { return registry[s].feature }

// String is the stage's line in documents.
func (s Stage) String() string {
	r := registry[s]
	return fmt.Sprintf("table %d priority %3d  %-8s  %s", r.table, r.priority, r.feature, r.purpose)
}

// Flow is the key of a flow in the stage.
func (s Stage) Flow(bridge, match string) Flow {
	return Flow{bridge, s.Table(), s.Priority(), match}
}
