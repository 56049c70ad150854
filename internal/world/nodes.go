package world

import (
	"maps"
	"slices"
)

// Nodes lists all nodes by name. The caller does not change the list, and drops it when a node comes or goes.
func (w *View) Nodes() []string {
	w.noteRead(KindNodes, "")
	return w.nodeNames
}

// Node is a node, or nil.
func (w *View) Node(name string) *Node {
	w.noteRead(KindNode, name)
	return w.nodes[name]
}

// SetNode adds or replaces a node. Node returns the part of it that is believed, and of others.
func (w *World) SetNode(n *Node) { Set(w, KindNode, n.orBefore(w.said[n.Name])) }

// nodeChanged follows what the Nodes say, and who is believed by it.
func (w *World) nodeChanged(old, now *Node) {
	if now == nil {
		w.nodeGone(old.Name)
		return
	}
	others := w.noteClaims(now.Name, now)
	w.putNode(w.withoutDisputed(now))
	for _, name := range others {
		w.putNode(w.withoutDisputed(w.said[name]))
	}
}

func (w *World) putNode(n *Node) {
	old := w.nodes[n.Name]
	w.nodes[n.Name] = n

	if n.Name == w.Self {
		w.settleHost()
	} else if w.Self == "" && (old == nil || old.BootID != n.BootID) {
		w.recheckBoot(n.Name)
	}
	if old == nil {
		at, _ := slices.BinarySearch(w.nodeNames, n.Name)
		w.nodeNames = slices.Insert(w.nodeNames, at, n.Name)
		w.noteWordOf(n.Name)
		w.noteNodeAddresses(n.Name, nil, n)
		w.noteChanged(KindNode, n.Name)
		w.noteChanged(KindSubnets, n.Name)
		w.noteChanged(KindNodes, "")
		return
	}
	if old.sameNode(n) {
		return
	}
	w.noteWordOf(n.Name)
	w.noteNodeAddresses(n.Name, old, n)
	w.noteChanged(KindNode, n.Name)
	if !slices.Equal(old.Subnets, n.Subnets) || !SameParts(old.Further, n.Further) {
		w.noteChanged(KindSubnets, n.Name)
	}
}

// DelNode removes a node.
func (w *World) DelNode(name string) { Del[Node](w, KindNode, name) }

func (w *World) nodeGone(name string) {
	old := w.nodes[name]
	delete(w.nodes, name)
	at, _ := slices.BinarySearch(w.nodeNames, name)
	w.nodeNames = slices.Delete(w.nodeNames, at, at+1)
	w.noteWordOf(name)
	w.noteNodeAddresses(name, old, nil)
	w.noteChanged(KindNode, name)
	w.noteChanged(KindSubnets, name)
	w.noteChanged(KindNodes, "")
	for _, other := range w.noteClaims(name, nil) {
		w.putNode(w.withoutDisputed(w.said[other]))
	}
}

// sameNode compares nodes: a kubelet writes its status every few seconds, and most of it concerns nobody here.
func (n *Node) sameNode(o *Node) bool {
	return n.UID == o.UID && n.ID == o.ID && n.Ready == o.Ready && n.BootID == o.BootID && n.Deleting == o.Deleting &&
		n.Cordoned == o.Cordoned && n.LetsExternalIPs == o.LetsExternalIPs &&
		n.CordonBoot == o.CordonBoot && n.Unschedulable == o.Unschedulable &&
		n.UplinkMAC == o.UplinkMAC && n.ChassisID == o.ChassisID &&
		maps.Equal(n.Labels, o.Labels) && slices.Equal(n.Subnets, o.Subnets) && slices.Equal(n.Primary, o.Primary) &&
		slices.Equal(n.InternalIPs, o.InternalIPs) &&
		slices.Equal(n.HostAddrs, o.HostAddrs) && slices.Equal(n.CIDRs, o.CIDRs) &&
		slices.Equal(n.Confirmed, o.Confirmed) && slices.Equal(n.Gateways, o.Gateways) &&
		slices.Equal(n.Problems, o.Problems) && slices.Equal(n.Join, o.Join) && slices.Equal(n.Transit, o.Transit) &&
		n.Record.Same(o.Record) &&
		SameParts(n.Further, o.Further)
}
