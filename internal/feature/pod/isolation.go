package pod

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// isolatePort closes the port in the default network of a pod whose primary network is another one, and returns the
// groups of the port. The port lets in connections from the node's management port to the declared ports of probes, and
// connections to the ports that the pod opens. The pod sends answers alone. OVN lets answers pass, and tracks
// connections for that, because the switch balances Services: none of the ACLs changes what it does with packets of
// other pods. IPv6 Neighbor Discovery passes all ACLs.
//
// The ACLs are about groups: one of all such ports, and one of each port number that pods open. With an ACL that comes
// or goes ovn-northd computes all flows again, and with a port that joins a group it does not.
func isolatePort(w *world.View, part *world.Part, a *world.Attachment, out *plan.Rows) []plan.RowID {
	primary := w.PrimaryNetwork(a.Namespace)
	if len(a.Further) == 0 && primary == ref.DefaultNetwork {
		return nil
	}
	p := w.Pod(a.Key())
	if p == nil || p.UID != a.UID {
		p = &world.Pod{} // all is closed
	}
	if len(p.ProbePorts) > 0 && primary != "" {
		reportProbePorts(primary, out)
	}
	i := isolation{part: part, sw: plan.Switch(plan.DefaultNames().NodeSwitch(w.Self)), out: out}
	i.closePort()
	i.admitProbes(p.ProbePorts)
	i.admitOpen(p.OpenPorts)
	slices.SortFunc(i.groups, func(a, b plan.RowID) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(i.groups)
}

// reportProbePorts says which processes reach ports of probes: the node does not tell the kubelet from the others.
func reportProbePorts(network string, out *plan.Rows) {
	text := "network " + network + ": all processes of this node reach the ports of its pods' probes, not the kubelet " +
		"alone. Use exec probes where that matters"
	plan.Add(&out.Problems, plan.Problem{Object: ref.Object{Kind: ref.LogicalNetwork, Name: network},
		Reason: world.ReasonProbePorts, Message: text}, plan.None{})
}

// isolation is the groups of one pod's port, with their ACLs.
type isolation struct {
	part   *world.Part
	sw     plan.RowID
	out    *plan.Rows
	groups []plan.RowID
}

// addRule has the port be in a group, and claims an ACL about it. All pods of the group claim the same.
func (i *isolation) addRule(group, direction string, priority int, match, action string) {
	id := i.out.AddPortGroup(group)
	i.groups = append(i.groups, id)
	i.out.AddGroupACL(group+"/"+direction+"/"+action, i.sw, id, direction, priority, match, action)
}

func (i *isolation) admitMatch(group, direction, match string) {
	i.addRule(group, direction, plan.PriorityAdmit, match, "allow")
}

// closePort drops all but ARP with the node's management port.
func (i *isolation) closePort() {
	const group = "egret-isolated"
	for _, direction := range []string{"to-lport", "from-lport"} {
		i.addRule(group, direction, plan.PriorityIsolate, "", "drop")
	}
	if s, ok := world.V4.Of(i.part.Subnets); ok {
		i.admitMatch(group, "to-lport", "arp.spa == "+managementAddr(s))
		i.admitMatch(group, "from-lport", "arp.tpa == "+managementAddr(s))
	}
}

func (i *isolation) admitProbes(ports []uint16) {
	var sources []string
	for _, s := range i.part.Subnets {
		sources = append(sources, world.FamilyOf(s.Addr()).Match()+".src == "+managementAddr(s))
	}
	for _, port := range ports {
		number := plan.Itoa(int(port))
		i.admitMatch("egret-probed-tcp-"+number, "to-lport",
			"tcp.dst == "+number+" && ("+strings.Join(sources, " || ")+")")
	}
}

// admitOpen opens ports, and ARP with all neighbours: with clients among them, and with the router to other clients.
func (i *isolation) admitOpen(ports []world.OpenPort) {
	for _, o := range ports {
		number := plan.Itoa(int(o.Port))
		i.admitMatch("egret-open", "to-lport", "arp")
		i.admitMatch("egret-open", "from-lport", "arp")
		switch o.Protocol {
		case "tcp", "udp", "sctp":
			i.admitMatch("egret-open-"+o.Protocol+"-"+number, "to-lport", o.Protocol+".dst == "+number)
		case "icmp":
			i.admitMatch("egret-open-icmp", "to-lport", "(icmp4.type == 8 || icmp6.type == 128)")
		}
	}
}

func managementAddr(subnet netip.Prefix) string { return world.Nth(subnet, 2).String() }
