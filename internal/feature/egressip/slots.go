package egressip

import (
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/world"
)

// slotted are the next hops of an EgressIP with several addresses, one a slot: the i-th address of the spec has the i-th slot. Number and order are
// the same whoever is alive, so that OVN, whose choice among next hops has no memory, goes on with every connection as it was, but for those of a
// slot whose address has lost its node, or got it back. Such a slot leads to one of the others.
func slotted(w *world.View, e *world.EgressIP, f world.Family) (hops []string, to []world.Assignment) {
	ips := f.OfAddrs(e.IPs)
	homes := homesOf(ips, func(ip netip.Addr) string { return home(w, e, ip) })
	if len(homes.left) == 0 {
		homes = homesOf(ips, func(ip netip.Addr) string { return lastResort(w, e, ip, f) })
	}
	if len(homes.left) == 0 {
		return nil, nil
	}
	for slot, ip := range ips {
		hop := slotHop(w, e, slot, homes.of(slot), f)
		if hop != "" && homes.at[slot] != "" {
			to = append(to, world.Assignment{Node: homes.at[slot], IP: ip})
		}
		if hop != "" && !slices.Contains(hops, hop) {
			hops = append(hops, hop)
		}
	}
	return hops, to
}

// homes are the nodes that the addresses lead to.
type homes struct {
	at   []string // by slot; "" where an address has none
	left []string // those that there are, each once
}

func homesOf(ips []netip.Addr, where func(netip.Addr) string) homes {
	var h homes
	for _, ip := range ips {
		node := where(ip)
		h.at = append(h.at, node)
		if node != "" && !slices.Contains(h.left, node) {
			h.left = append(h.left, node)
		}
	}
	return h
}

func (h homes) of(slot int) string {
	if h.at[slot] != "" {
		return h.at[slot]
	}
	return h.left[slot%len(h.left)]
}

// home is the live node that an address leads to, or "": the one that it is assigned to; the one that it is leaving, while its successor gets ready.
func home(w *world.View, e *world.EgressIP, ip netip.Addr) string {
	if node := assignedHolder(w, e, ip, true); node != "" || e.Assignee(ip) == "" {
		return node
	}
	return leavingHolder(w, e, ip)
}

// lastResort is where an address leads to when none has a home: to a node that gives it up and has no successor, or to one that is not heard of.
func lastResort(w *world.View, e *world.EgressIP, ip netip.Addr, f world.Family) string {
	if node := leavingHolder(w, e, ip); node != "" && e.HasItems(f) {
		return node
	}
	return assignedHolder(w, e, ip, false)
}

func leavingHolder(w *world.View, e *world.EgressIP, ip netip.Addr) string {
	if to := instead(w, e, standIn(w, e, ip), ip); numbered(w, to) {
		return to
	}
	return ""
}

// assignedHolder is the node that an address is assigned to, if it holds it and is alive, or is not; else "".
func assignedHolder(w *world.View, e *world.EgressIP, ip netip.Addr, alive bool) string {
	node := e.Assignee(ip)
	if to := instead(w, e, node, ip); w.Holds(node, e.Name, ip) && w.Alive(node) == alive && numbered(w, to) {
		return to
	}
	return ""
}

func numbered(w *world.View, node string) bool {
	n := w.Node(node)
	return n != nil && n.ID != 0
}

// slotHop is a node's address in a slot: beyond the own gateway router, or another zone's. For what this node's own host translates there is one
// address only, the management port's, whatever the slot; "" for what is nowhere here.
func slotHop(w *world.View, e *world.EgressIP, slot int, node string, f world.Family) string {
	if node == w.Self {
		hop, ok := ownHop(w, e, w.Node(node), f)
		if !ok {
			return ""
		}
		if hop != w.Config.Join(w.Node(node).ID, f).Addr() {
			return hop.String()
		}
		return w.Config.SlotJoin(slot, w.Node(node).ID, f).Addr().String()
	}
	return w.Config.SlotTransit(slot, w.Node(node).ID, f).Addr().String()
}
