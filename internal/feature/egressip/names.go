package egressip

import (
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// An EgressIP's rows in OVN and in the host's kernel are named here, and read back by Adopted, egress.ParseName and
// egress.IsLeakFilter: only its name identifies a row that a previous process left.

// contents is what a set of an EgressIP has.
type contents string

const (
	allPods        contents = "pods"                // that it has a claim to
	partlyPods     contents = plan.PartlyTranslated // the same, of one that has not all destinations, on a host
	localPods      contents = egress.LocalPods      // those of this node, which its policy steers
	pausedPodsOf   contents = "held"                // those of this node with paused egress to its destinations
	filteredPodsOf contents = egress.PartlyFiltered // this node's under the leak filter as to its destinations alone
	destinationsOf contents = egress.Destinations   // where it serves its pods
	// uncoveredPods are those of this node for which it stands by, and of whose packets the rest is dropped.
	uncoveredPods contents = "uncovered"
	// remotePods are those of other nodes. Two policies of one priority and one match act in an undefined order: it has
	// nothing in common with localPods.
	remotePods contents = "remote"
)

// setName is the name of an EgressIP's set in OVN.
func (c contents) setName(e *world.EgressIP, f world.Family) string { return setName(e.Name, c, f) }

// hostSet is the name of the same set in nftables.
func (c contents) hostSet(e *world.EgressIP, f world.Family) string {
	return setName(egress.Short(e.Name), c, f)
}

// translatedPods names the set in nftables of the pods that this host translates to an address on a link. Each address
// has its own set, as in package egressservice: a set loses its members later than the rules change.
func translatedPods(e *world.EgressIP, ip netip.Addr) string {
	has := allPods
	if e.Traffic != nil {
		has = partlyPods
	}
	return setName(egress.ShortFor(e.Name, ip), has, world.FamilyOf(ip))
}

// namePrefix is in front of all names of what one EgressIP has. No EgressIP has '/' in its name.
const namePrefix = "egressip/"

func setName(egressIP string, c contents, f world.Family) string {
	return namePrefix + egressIP + "/" + string(c) + "." + f.String()
}

func policyName(egressIP string, f world.Family) string {
	return namePrefix + egressIP + "/" + f.String()
}

// natRow is the start of the ids of the rows that translate to an address.
func natRow(egressIP string, ip netip.Addr) string { return namePrefix + egressIP + "/" + ip.String() }

// Adopted is the address that a NAT row which a former process left in OVN translates to; false for every row that
// Hosts did not write. The id is all that the database says of it.
func Adopted(id plan.RowID) (e plan.Egress, is bool) {
	rest, is := strings.CutPrefix(id.Name, namePrefix)
	name, rest, _ := strings.Cut(rest, "/")
	text, _, _ := strings.Cut(rest, "/")
	ip, err := netip.ParseAddr(text)
	return egressOf(name, ip), is && id.Table == "NAT" && err == nil
}

// AdoptedOnLink returns the address on a link for whose pods a former process made a set of the host's; false for every
// other set, and for those whose names are shortened.
func AdoptedOnLink(set string) (e plan.Egress, is bool) {
	of, has, _ := egress.ParseName(set)
	name, text, _ := strings.Cut(of.Name, "_")
	ip, err := netip.ParseAddr(strings.ReplaceAll(text, "-", ":"))
	isOfPods := has == string(allPods) || has == string(partlyPods)
	return egressOf(name, ip), of.Kind == ref.EgressIP && isOfPods && err == nil
}

// egressOf is an address of an EgressIP in the tables of what a node tells.
func egressOf(egressIP string, ip netip.Addr) plan.Egress {
	return plan.Egress{Object: refTo(egressIP), Network: ref.DefaultNetwork, IP: ip}
}

func refTo(egressIP string) ref.Object { return ref.Object{Kind: ref.EgressIP, Name: egressIP} }

// announceAddress announces an address, and says that this node answers for it.
func announceAddress(egressIP string, a plan.Announcement, out *plan.Rows) {
	plan.Add(&out.Announcements, a, plan.None{})
	plan.Add(&out.Answered, egressOf(egressIP, a.IP), a)
}
