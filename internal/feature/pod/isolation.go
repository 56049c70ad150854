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
// or goes ovn-northd computes all flows again, and with a port that joins a group it does not. A pod with many port
// numbers has a group of its own instead, so that its user cannot make a group and an ACL of each number.
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
	i.admitOpen(p.OpenPorts)
	i.admitPorts(a.Key(), i.listPorts(p))
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

// admitOpen opens ARP with all neighbours, with clients among them, and with the router to other clients. It opens
// pings, too.
func (i *isolation) admitOpen(ports []world.OpenPort) {
	if len(ports) > 0 {
		i.admitMatch("egret-open", "to-lport", "arp")
		i.admitMatch("egret-open", "from-lport", "arp")
	}
	if slices.ContainsFunc(ports, func(o world.OpenPort) bool { return o.Protocol == "icmp" }) {
		i.admitMatch("egret-open-icmp", "to-lport", "(icmp4.type == 8 || icmp6.type == 128)")
	}
}

// portList is the numbers of one protocol's ports that a pod opens.
type portList struct {
	group, protocol string // group is what the names of their groups begin with
	from            string // a condition about clients; "": all clients
	numbers         []string
}

// matchOf is for packets to some of the ports.
func (l portList) matchOf(numbers ...string) string {
	list := numbers[0]
	if len(numbers) > 1 {
		list = "{" + strings.Join(numbers, ", ") + "}"
	}
	return l.protocol + ".dst == " + list + l.from
}

// listPorts lists the ports of probes, for the node, and those that the pod opens.
func (i *isolation) listPorts(p *world.Pod) []portList {
	var sources []string
	for _, s := range i.part.Subnets {
		sources = append(sources, world.FamilyOf(s.Addr()).Match()+".src == "+managementAddr(s))
	}
	lists := []portList{{group: "egret-probed-tcp-", protocol: "tcp",
		from: " && (" + strings.Join(sources, " || ") + ")"}}
	for _, port := range p.ProbePorts {
		lists[0].numbers = append(lists[0].numbers, plan.Itoa(int(port)))
	}
	for _, protocol := range []string{"tcp", "udp", "sctp"} {
		l := portList{group: "egret-open-" + protocol + "-", protocol: protocol}
		for _, o := range p.OpenPorts {
			if o.Protocol == protocol {
				l.numbers = append(l.numbers, plan.Itoa(int(o.Port)))
			}
		}
		lists = append(lists, l)
	}
	return slices.DeleteFunc(lists, func(l portList) bool { return len(l.numbers) == 0 })
}

// mostShared is of how many port numbers a pod's port is in groups that it shares.
const mostShared = 8

// admitPorts opens ports of a pod: by groups of all pods with the port, or by one group with one ACL.
func (i *isolation) admitPorts(pod string, lists []portList) {
	count, all := 0, []string{}
	for _, l := range lists {
		count += len(l.numbers)
		all = append(all, "("+l.matchOf(l.numbers...)+")")
	}
	if count > mostShared {
		i.admitMatch("egret-ports/"+pod, "to-lport", "("+strings.Join(all, " || ")+")")
		return
	}
	for _, l := range lists {
		for _, number := range l.numbers {
			i.admitMatch(l.group+number, "to-lport", l.matchOf(number))
		}
	}
}

func managementAddr(subnet netip.Prefix) string { return world.Nth(subnet, 2).String() }
