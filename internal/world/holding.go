package world

import (
	"maps"
	"net/netip"
	"slices"
)

// Holds says whether a node holds an egress IP: it says so itself, and has not been rebooted since.
func (w *World) Holds(node, egressIP string, ip netip.Addr) bool {
	w.saw(KindHolders, egressIP)
	h, n := w.holdings[node], w.nodes[node]
	return h != nil && n != nil && h.BootID == n.BootID && slices.Contains(h.Holds[egressIP], ip)
}

// Holders are the nodes that hold an address of an EgressIP, sorted by name.
func (w *World) Holders(egressIP string, ip netip.Addr) []string {
	w.saw(KindHolders, egressIP)
	var out []string
	for node := range w.holdings {
		if w.Holds(node, egressIP, ip) {
			out = append(out, node)
		}
	}
	slices.Sort(out)
	return out
}

// Alive says whether packets sent to a node have a chance: it exists and Kubernetes hears of it.
func (w *World) Alive(node string) bool {
	n := w.Node(node)
	return n != nil && n.Ready
}

// SetHolding replaces what a node says it holds.
func (w *World) SetHolding(h *Holding) []Touch {
	old := w.holdings[h.Node]
	w.holdings[h.Node] = h
	return holdersTouched(old, h)
}

// DelHolding removes what a node said.
func (w *World) DelHolding(node string) []Touch {
	old := w.holdings[node]
	delete(w.holdings, node)
	return holdersTouched(old, nil)
}

// Holding is what a node says it holds, or nil. It does not record.
func (w *World) Holding(node string) *Holding { return w.holdings[node] }

// touchHolder touches every EgressIP that a node says it holds: whether that counts depends on the node.
func (w *World) touchHolder(node string) []Touch { return holdersTouched(w.holdings[node], nil) }

func holdersTouched(old, new *Holding) []Touch {
	names := map[string]bool{}
	for _, h := range []*Holding{old, new} {
		if h == nil {
			continue
		}
		for name, ips := range h.Holds {
			if old == nil || new == nil || old.BootID != new.BootID || !slices.Equal(old.Holds[name], ips) || !slices.Equal(new.Holds[name], ips) {
				names[name] = true
			}
		}
	}
	var t []Touch
	for name := range maps.Keys(names) {
		t = append(t, Touch{KindHolders, name})
	}
	return t
}
