package egressip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/egress"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// logicalNetwork is a network in which this node leads and translates pods' packets: the default one, or a network of
// users. All rows and sets of the latter have its name in front: two networks may have pods with one address.
//
// A packet leaves a network of users by its gateway router, which gives it the network's masquerade address. So the
// default network's gateway router cannot tell pods apart. At the holder the network's gateway router gives the packet
// the mark of its EgressIP first, and the default network's one translates by that mark.
type logicalNetwork struct {
	plan.Names
	in *world.Network
}

func defaultNetwork(w *world.View) logicalNetwork {
	return logicalNetwork{plan.DefaultNames(), w.Network(ref.DefaultNetwork)}
}

// networkHere returns a network of which this node has a part.
func networkHere(w *world.View, name string) (n logicalNetwork, here bool) {
	if name == ref.DefaultNetwork {
		return defaultNetwork(w), true
	}
	if p := w.Part(name); name != "" && p != nil {
		return logicalNetwork{plan.Names{Network: p.Name, ID: p.ID}, p.Network}, true
	}
	return logicalNetwork{}, false
}

// setName is the name of a set of an EgressIP's pods of the network in OVN.
func (n logicalNetwork) setName(c contents, e *world.EgressIP, f world.Family) string {
	return n.Row(c.setName(e, f))
}

// Networks adds to each network of users what Allow adds to the default one, and the leak filter.
type Networks struct{}

func (Networks) Name() string    { return "egressip-network" }
func (Networks) Per() world.Kind { return world.KindNetwork }

// Compile adds the rows of one network, as many as it has subnets, whatever its pods and EgressIPs are.
func (Networks) Compile(w *world.View, name string, out *plan.Rows) {
	n, here := networkHere(w, name)
	if !here || n.ID == 0 {
		return
	}
	for _, f := range n.in.Families() {
		n.keepInside(w, f, out)
		n.markRouterReplies(w, f, out)
		n.allowOpenServices(w, f, out)
		n.dropUnmarked(w, f, n.Row(egress.FilteredPods(f)), "", out)
		n.masqueradeMarked(w, f, out)
		n.dropUntranslated(w, f, out)
		leadMarkedOutside(w, f, out)
		dropMarkedAsNode(w, f, out)
	}
}

// markRouterReplies marks replies that go out by this node's own gateway router of the network, which balanced the
// connection: the leak filter lets them pass. They go into no tunnel.
func (n logicalNetwork) markRouterReplies(w *world.View, f world.Family, out *plan.Rows) {
	match := isReply + " && " + f.Match() + ".dst == " + n.in.JoinAddr(w.Node(w.Self).ID, f).Addr().String()
	n.addMarkPolicy(w, "egressip-mark-router-replies."+f.String(), plan.PriorityRouterReplies, match, plan.MarkReply,
		out)
}

// allowOpenServices lets packets to the default network's open Services out of the network without a mark. They come
// back inside, and OVS 3.5's userspace datapath sends nothing with a mark into a tunnel.
func (n logicalNetwork) allowOpenServices(w *world.View, f world.Family, out *plan.Rows) {
	set := plan.OpenServiceIPs(f.String())
	out.AddSet(set)
	n.addGatewayPolicy(w, "egressip-no-reroute/open-services."+f.String(), plan.PriorityAllow,
		f.Match()+".dst == "+plan.InSet(set), "allow", 0, out)
}

// dropUnmarked is the leak filter: packets of this node's pods of a set leave the network with a mark, or not at all.
// match is what else a packet must have.
func (n logicalNetwork) dropUnmarked(w *world.View, f world.Family, pods, match string, out *plan.Rows) {
	match = fmt.Sprintf("inport == %q && %s.src == %s%s && pkt.mark == 0", n.GatewayToJoin(w.Self), f.Match(),
		plan.InSet(pods), match)
	n.addGatewayPolicy(w, strings.TrimPrefix(pods, n.Row("")), plan.PriorityFiltered, match, "drop", 0, out)
}

// markPod has the network's gateway router mark a pod's packets for this holder to translate. The pod may be on any
// node. It reports whether the EgressIP has a mark. A holder that has not heard of one tells people so.
func (n logicalNetwork) markPod(
	w *world.View, e *world.EgressIP, f world.Family, ip netip.Addr, out *plan.Rows,
) (has bool) {
	mark := w.MarkOf(e.Name)
	if mark == 0 {
		n.tellUnmarked(e, out)
		return false
	}
	set := n.setName(allPods, e, f)
	out.AddSet(set)
	out.AddElem(set, ip.String())
	n.addGatewayPolicy(w, allPods.setName(e, f), plan.PriorityMarked,
		f.Match()+".src == "+plan.InSet(set)+onlyTo(e, f)+" && pkt.mark == 0", "allow", mark, out)
	return true
}

// addGatewayPolicy claims a policy of the network's gateway router, which sets a mark unless it is 0.
func (n logicalNetwork) addGatewayPolicy(
	w *world.View, id string, priority int, match, action string, mark int, out *plan.Rows,
) {
	options := map[string]string{}
	if mark != 0 {
		options["pkt_mark"] = plan.Itoa(mark)
	}
	out.AddNB(plan.RowID{Table: plan.TablePolicy, Name: n.Row(id)}, plan.Router(n.GatewayRouter(w.Self)), plan.Cols{
		"priority": priority, "match": match, "action": action, "nexthops": []string(nil), "options": options})
}

// isMarked says that a packet has the mark of an EgressIP: the highest bits of world.FirstMark to world.LastMark are
// set, and no other mark's.
const isMarked = "pkt.mark[14..15] == 3"

// markBits are these bits.
const markBits = 3 << 14

// masqueradeMarked gives the network's masquerade address to packets of other nodes' pods, too, where they have a mark.
func (n logicalNetwork) masqueradeMarked(w *world.View, f world.Family, out *plan.Rows) {
	source, ok := n.in.Masquerade(f)
	if !ok {
		return
	}
	for _, c := range n.in.Cluster(f) {
		id := plan.RowID{Table: "NAT", Name: n.Row("egressip-masquerade/" + c.String())}
		out.AddNB(id, plan.Router(n.GatewayRouter(w.Self)), plan.Cols{"type": "snat", "external_ip": source.String(),
			"logical_ip": c.String(), "match": isMarked, "priority": natPriority})
	}
}

// dropUntranslated drops what leaves the network with a pod's own address: packets of other nodes' pods without a mark.
// In the default network the address may be another pod's.
func (n logicalNetwork) dropUntranslated(w *world.View, f world.Family, out *plan.Rows) {
	var from []string
	for _, c := range n.in.Cluster(f) {
		from = append(from, c.String())
	}
	match := fmt.Sprintf("inport == %q && %s.src == {%s}", n.LinkToNetwork(w.Self), f.Match(), strings.Join(from, ", "))
	out.AddPolicy(plan.DefaultNames(), n.Row("egressip-untranslated."+f.String()), plan.PriorityIsolated, match, "drop",
		nil, nil)
}

// leadMarkedOutside has packets with a mark leave by the gateway router in local gateway mode, too: it translates them.
func leadMarkedOutside(w *world.View, f world.Family, out *plan.Rows) {
	if w.Config.GatewayMode != world.LocalGateway {
		return
	}
	match := f.Match() + ".src == " + world.Masquerades(f).String() + " && " + isMarked
	out.AddPolicy(plan.DefaultNames(), "egressip-marked."+f.String(), plan.PriorityMarkedOutside, match, "reroute",
		[]string{w.Config.Join(w.Node(w.Self).ID, f).Addr().String()}, nil)
}

// dropMarkedAsNode drops on the bridge what has a mark and the node's address: the default network's gateway router
// gives that to each packet of a network of users for which no egress IP's row matches. Datapaths change one entry
// after the other, and the network's gateway router may set the mark before the other one knows it.
func dropMarkedAsNode(w *world.View, f world.Family, out *plan.Rows) {
	if node, ok := f.Of(w.Host().Primary); ok {
		checkOnBridge(w.Config, f, node.Addr(), fmt.Sprintf("%#x/%#x", markBits, markBits), out)
	}
}

// addNetworksNAT translates packets of all networks of users that have the EgressIP's mark. Packets that go back inside
// the cluster keep their source: the match asks for the port to the outside.
func addNetworksNAT(
	w *world.View, self *world.Node, e *world.EgressIP, f world.Family, ip netip.Addr, out *plan.Rows,
) {
	mark, names := w.MarkOf(e.Name), plan.DefaultNames()
	if mark == 0 || len(self.Further) == 0 {
		return
	}
	match := fmt.Sprintf("outport == %q && pkt.mark == %d", names.GatewayToExternal(w.Self), mark)
	out.AddNB(plan.RowID{Table: "NAT", Name: natRow(e.Name, ip) + "/networks"},
		plan.Router(names.GatewayRouter(w.Self)), plan.Cols{"type": "snat", "external_ip": ip.String(),
			"logical_ip": world.Masquerades(f).String(), "match": match, "priority": natPriority})
}

// canTranslate reports whether a node translates packets of the network to an egress IP: in a network of users it does
// if it has a part of the network, and the address is not on a link beside its primary network.
func (n logicalNetwork) canTranslate(w *world.View, node string, ip netip.Addr) bool {
	if n.ID == 0 {
		return true
	}
	x := w.Node(node)
	return x != nil && len(x.In(n.Network).Subnets) > 0 && !isOnLink(x, ip)
}

// isOnLink reports whether a node has an address on a link beside its primary network.
func isOnLink(n *world.Node, ip netip.Addr) bool {
	p := world.Longest(slices.Values(n.Networks()), ip)
	isPrimary := func(a netip.Prefix) bool { return a.Masked() == p }
	return p.IsValid() && !slices.ContainsFunc(n.Primary, isPrimary)
}

// unserved says why a claim's object does not serve pods of the network; "": it does.
func (n logicalNetwork) unserved(w *world.View, c world.Claim) string {
	switch {
	case n.ID == 0:
		return ""
	case c.By.Kind != ref.EgressIP:
		return c.By.Kind + "s serve the default network only"
	case w.MarkOf(c.By.Name) == 0:
		return "it has no mark for packets of such networks yet"
	}
	return ""
}

// blockOtherWays drops what a pod of this node sends outside by another network than its primary one, which is no
// default network, while an object has a claim to its packets. If an object does not serve the primary network, the pod
// sends nothing outside there either: it says so.
func blockOtherWays(
	w *world.View, p *world.Pod, name string, f world.Family, claims []world.Claim, out *plan.Rows,
) (all bool) {
	if p.Node != w.Self || len(claims) == 0 {
		return false
	}
	n, here := networkHere(w, name)
	for _, c := range claims {
		why := n.unserved(w, c)
		if why == "" && here {
			tellOnLink(w, name, c, f, out)
			continue
		}
		tellUnserved(c, name, cmp.Or(why, "this node has no part of it yet"), out)
		all = true
	}
	for _, by := range networksOf(w, p) {
		if all || by != name {
			pauseInterface(w, by, f.OfAddrs(egress.Addresses(w, p, by)), out)
		}
	}
	return all
}

// tellUnserved says that pods send nothing outside, and why.
func tellUnserved(c world.Claim, name, why string, out *plan.Rows) {
	text := "pods of this node that it selects send nothing outside: their primary network is " +
		cmp.Or(name, "their namespace's own, which does not exist yet") + ", and " + why
	plan.Add(&out.Problems, plan.Problem{Object: c.By, Reason: world.ReasonUnserved, Message: text}, plan.None{})
}

// tellUnmarked says that this node translates no packet of a network's pods to an EgressIP that it hosts.
func (n logicalNetwork) tellUnmarked(e *world.EgressIP, out *plan.Rows) {
	text := "what pods of network " + n.Network + " send here is dropped: this node has heard of no " +
		"annotation k8s.ovn.org/egressip-mark of it"
	p := plan.Problem{Object: refTo(e.Name), Reason: world.ReasonUnserved, Message: text}
	plan.Add(&out.Problems, p, plan.None{})
}

// tellOnLink says which addresses of an EgressIP do not serve pods of a network of users, for they are on a link.
func tellOnLink(w *world.View, name string, c world.Claim, f world.Family, out *plan.Rows) {
	for _, i := range w.EgressIP(c.By.Name).Items {
		if x := w.Node(i.Node); x == nil || world.FamilyOf(i.IP) != f || !isOnLink(x, i.IP) {
			continue
		}
		text := fmt.Sprintf("%s is not on the primary network of %s, and serves the default network only: "+
			"no pod of network %s leaves with it", i.IP, i.Node, name)
		plan.Add(&out.Problems, plan.Problem{Object: c.By, Reason: world.ReasonUnserved, Message: text}, plan.None{})
	}
}

// networksOf are those that a pod of this node has addresses in.
func networksOf(w *world.View, p *world.Pod) []string {
	out := p.Networks()
	if a := w.Attachment(p.Key()); a != nil && a.UID == p.UID {
		for _, i := range a.Further {
			out = append(out, i.Network)
		}
	}
	return out
}

// pauseInterface has a pod send nothing outside with its addresses in a network. A network that is not known yet has no
// port for the pod either.
func pauseInterface(w *world.View, network string, ips []netip.Addr, out *plan.Rows) {
	n := w.Network(network)
	if n == nil {
		return
	}
	for _, ip := range ips {
		egress.Pause(w, plan.Names{Network: n.Name, ID: n.ID}, world.FamilyOf(ip), ip, out)
	}
}
