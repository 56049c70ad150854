package egressip

import (
	"net/netip"

	"github.com/egret-net/egret/internal/world"
)

// steer says what a pod's node does with a served pod's packets of a family: reroute to the nodes that are ready for them, drop
// while the EgressIP is in force and nobody is, or, with action "", nothing: the path the pod had, the node's own address.
//
// An address leads to the node that status names for it, if it holds it and is alive; else to a live node that still holds it though it is no longer
// named, while its successor gets ready. Where that is true of no address, named holders that are not heard of may be all that is left.
func steer(w *world.World, e *world.EgressIP, f world.Family) (action string, nexthops []string) {
	if !w.EgressIP(e.Name).Active(f) {
		return "", nil
	}
	if hops := ways(w, e, f); len(hops) > 0 {
		return "reroute", hops
	}
	if e.InForce[f] || e.DropWhenUnassigned {
		return "drop", nil
	}
	return "", nil
}

// namedHolders are the nodes that status names and that hold what it says.
func namedHolders(w *world.World, e *world.EgressIP, f world.Family, alive bool) []string {
	var out []string
	for _, a := range e.Items {
		if world.FamilyOf(a.IP) == f && w.Holds(a.Node, e.Name, a.IP) && w.Alive(a.Node) == alive {
			out = appendNode(out, instead(w, e, a.Node, a.IP))
		}
	}
	return out
}

// instead is a holder, or the node that this one has given way to; "" if that is no node of the cluster.
func instead(w *world.World, e *world.EgressIP, node string, ip netip.Addr) string {
	if to, yielded := w.Yielded(e.Name, ip); yielded && node == w.Self {
		return to
	}
	return node
}

func appendNode(list []string, node string) []string {
	if node == "" {
		return list
	}
	return append(list, node)
}

// formerHolders are live nodes that still hold an address of the EgressIP.
func formerHolders(w *world.World, e *world.EgressIP, f world.Family) []string {
	var out []string
	for _, ip := range f.OfAddrs(e.IPs) {
		for _, n := range w.Holders(e.Name, ip) {
			if w.Alive(n) {
				out = appendNode(out, instead(w, e, n, ip))
			}
		}
	}
	return out
}

// ways are the next hops to those who are ready, if anybody is: by slots where there are several addresses.
func ways(w *world.World, e *world.EgressIP, f world.Family) []string {
	if n := len(f.OfAddrs(e.IPs)); n > 1 && n <= world.Slots && w.Config.SlotTransit(0, 1, f).IsValid() {
		return slotted(w, e, f)
	}
	for _, nodes := range [][]string{namedHolders(w, e, f, true), formerHolders(w, e, f), namedHolders(w, e, f, false)} {
		if hops := nexthopsOf(w, e, nodes, f); len(hops) > 0 {
			return hops
		}
	}
	return nil
}

// nexthopsOf are addresses on the cluster router's side: this node's own gateway router or host, or the other zones' transit ports.
func nexthopsOf(w *world.World, e *world.EgressIP, nodes []string, f world.Family) []string {
	seen := map[netip.Addr]bool{}
	var hops []string
	for _, name := range nodes {
		n := w.Node(name)
		if n == nil || n.ID == 0 {
			continue
		}
		hop, ok := w.Config.Transit(n.ID, f).Addr(), true
		if name == w.Self {
			hop, ok = ownHop(w, e, n, f)
		}
		if ok && !seen[hop] {
			seen[hop] = true
			hops = append(hops, hop.String())
		}
	}
	return hops
}

// hosted are the addresses of a family that this node translates to: those that status gives it, else the first that it still holds while
// its successor is not ready, else the first that lingers. Never two kinds: two rows that translate the same pods would leave it open which
// one does.
func hosted(w *world.World, e *world.EgressIP, f world.Family) []netip.Addr {
	var named []netip.Addr
	for _, a := range w.EgressIP(e.Name).Items {
		if _, yielded := w.Yielded(e.Name, a.IP); a.Node == w.Self && world.FamilyOf(a.IP) == f && !yielded {
			named = append(named, a.IP)
		}
	}
	if len(named) > 0 {
		return named
	}
	for _, ip := range f.OfAddrs(e.IPs) {
		if stillHeld(w, e, f, ip) {
			return []netip.Addr{ip}
		}
	}
	lingering := f.OfAddrs(w.Lingering(e.Name))
	return lingering[:min(1, len(lingering))]
}

// stillHeld says whether this node, as former holder of an address, keeps it: until the node that status names for it is ready; or, where none is
// named and the EgressIP has not been given up, until any named node is.
func stillHeld(w *world.World, e *world.EgressIP, f world.Family, ip netip.Addr) bool {
	if !w.Holds(w.Self, e.Name, ip) {
		return false
	}
	for _, a := range w.EgressIP(e.Name).Items {
		if a.IP == ip {
			return a.Node != w.Self && (!w.Holds(a.Node, e.Name, ip) || !w.Alive(a.Node))
		}
	}
	return e.Active(f) && len(namedHolders(w, e, f, true)) == 0
}
