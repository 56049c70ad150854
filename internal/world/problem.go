package world

import (
	"cmp"

	"github.com/egret-net/egret/internal/ref"
)

// Problem is what keeps a node from doing something for an object: for a network of its links, or for all, where the
// object is the node itself.
type Problem struct {
	Object          ref.Object
	Reason, Message string
}

// Reasons of problems.
const (
	ReasonRefused        = "Refused"        // a target refused a row
	ReasonUnserved       = "Unserved"       // pods that it cannot serve send nothing outside
	ReasonUnfollowed     = "Unfollowed"     // a holder does not say that it has followed which pods an object serves
	ReasonUnavailable    = "Unavailable"    // targets could not be written
	ReasonNotSteered     = "NotSteered"     // the node's own pods do not get through to what it hosts
	ReasonNetworkFault   = "NetworkFault"   // a network of the node can host nothing
	ReasonNoAnswer       = "NoAnswer"       // a process that the node depends on does not answer
	ReasonLateWatch      = "LateWatch"      // a watch of the API server brings nothing
	ReasonUnreachable    = "Unreachable"    // other agents cannot ask the node's agent
	ReasonOverlap        = "Overlap"        // a network of the host overlaps a range of the cluster
	ReasonMTU            = "MTU"            // the uplink does not carry what pods may send
	ReasonFirewall       = "Firewall"       // a chain of others drops what the host forwards for pods
	ReasonHoldingCut     = "HoldingCut"     // the node holds more than it can report
	ReasonSteersCut      = "SteersCut"      // the node steers to more than it can report
	ReasonUnknownNetwork = "UnknownNetwork" // the host has no such routing table
	ReasonAddressTaken   = "AddressTaken"   // a pod says that it has an address that is another's
	ReasonNoDefaultRoute = "NoDefaultRoute" // a routing table leads nowhere outside
	ReasonProbePorts     = "ProbePorts"     // all processes of the node reach ports of pods' probes
	ReasonPortName       = "PortName"       // a pod has the name of one of the node's ports
	ReasonMore           = "More"           // the node has more problems than it can report
	ReasonUnspecified    = "Unspecified"    // its EgressNode has a field that cannot be read
)

// String is the problem as people read it. It starts with the object that it is about.
func (p Problem) String() string {
	switch p.Object.Kind {
	case ref.EgressIP:
		return "egressip/" + p.Object.Name + ": " + p.Message
	case ref.EgressService:
		return "egressservice/" + p.Object.Key() + ": " + p.Message
	case ref.Network:
		return "network/" + p.Object.Name + ": " + p.Message
	}
	return p.Message
}

// Compare orders by text.
func (p Problem) Compare(o Problem) int {
	return cmp.Or(cmp.Compare(p.String(), o.String()), cmp.Compare(p.Reason, o.Reason), p.Object.Compare(o.Object))
}
