package pod

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// isolatePort closes the port in the default network of a pod whose primary network is another one. The port lets in
// connections from the node's management port to the declared ports of probes, and connections to the ports that the
// pod opens. The pod sends answers alone. OVN lets answers pass, and tracks connections for that, because the switch
// balances Services: none of the ACLs changes what it does with packets of other pods. IPv6 Neighbor Discovery passes
// all ACLs.
func isolatePort(w *world.View, a *world.Attachment, out *plan.Rows) {
	part, primary := w.Part(ref.DefaultNetwork), w.PrimaryNetwork(a.Namespace)
	if part == nil || len(a.Further) == 0 && primary == ref.DefaultNetwork {
		return
	}
	p := w.Pod(a.Key())
	if p == nil || p.UID != a.UID {
		p = &world.Pod{} // all is closed
	}
	if len(p.ProbePorts) > 0 && primary != "" {
		reportProbePorts(primary, out)
	}
	sw, port := plan.Switch(plan.DefaultNames().NodeSwitch(w.Self)), plan.DefaultNames().PodPort(a.Namespace, a.Name)
	for _, way := range []struct {
		direction, port string
		admitted        []string
	}{
		{"to-lport", "outport", matchAsked(part, p)},
		{"from-lport", "inport", matchARP(part, p, "arp.tpa")},
	} {
		at, id := fmt.Sprintf("%s == %q", way.port, port), "isolated/"+a.Key()+"/"+way.direction
		out.AddPortACL(id+"/drop", sw, way.direction, plan.PriorityIsolate, at, "drop")
		if len(way.admitted) > 0 {
			out.AddPortACL(id+"/admit", sw, way.direction, plan.PriorityAdmit,
				at+" && (("+strings.Join(way.admitted, ") || (")+"))", "allow")
		}
	}
}

// reportProbePorts says which processes reach ports of probes: the node does not tell the kubelet from the others.
func reportProbePorts(network string, out *plan.Rows) {
	text := "network " + network + ": all processes of this node reach the ports of its pods' probes, not the kubelet " +
		"alone. Use exec probes where that matters"
	plan.Add(&out.Problems, plan.Problem{Object: ref.Object{Kind: ref.LogicalNetwork, Name: network},
		Reason: world.ReasonProbePorts, Message: text}, plan.None{})
}

// matchAsked returns the matches of packets that the pod receives.
func matchAsked(part *world.Part, p *world.Pod) []string {
	out := matchARP(part, p, "arp.spa")
	if probed := portSet("tcp", p.ProbePorts); probed != "" {
		for _, s := range part.Subnets {
			out = append(out, world.FamilyOf(s.Addr()).Match()+".src == "+managementAddr(s)+" && "+probed)
		}
	}
	ports := map[string][]uint16{}
	for _, o := range p.OpenPorts {
		ports[o.Protocol] = append(ports[o.Protocol], o.Port)
	}
	for _, proto := range []string{"tcp", "udp", "sctp"} {
		if opened := portSet(proto, ports[proto]); opened != "" {
			out = append(out, opened)
		}
	}
	if ports["icmp"] != nil {
		out = append(out, "icmp4.type == 8", "icmp6.type == 128")
	}
	return out
}

// matchARP returns the matches of ARP with the node's management port, which field names. A pod that opens ports has
// ARP with all its neighbours: with clients among them, and with the router to other clients.
func matchARP(part *world.Part, p *world.Pod, field string) []string {
	s, ok := world.V4.Of(part.Subnets)
	switch {
	case !ok:
		return nil
	case len(p.OpenPorts) > 0:
		return []string{"arp"}
	}
	return []string{field + " == " + managementAddr(s)}
}

func managementAddr(subnet netip.Prefix) string { return world.Nth(subnet, 2).String() }

// portSet is the match of packets to ports of a protocol; "": none.
func portSet(proto string, ports []uint16) string {
	if len(ports) == 0 {
		return ""
	}
	var texts []string
	for _, p := range ports {
		texts = append(texts, plan.Itoa(int(p)))
	}
	return proto + ".dst == {" + strings.Join(texts, ", ") + "}"
}
