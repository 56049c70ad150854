package world

// Tunnel is whether another node answers over a tunnel of the kind that pods' packets take.
type Tunnel uint8

const (
	// TunnelUnknown: it has not answered since the session began, or there is no session. It says nothing about the
	// node.
	TunnelUnknown Tunnel = iota
	// TunnelUp: the node's switch answers.
	TunnelUp
	// TunnelDown: the node's switch has fallen silent.
	TunnelDown
)

// String is "unknown", "up" or "down".
func (t Tunnel) String() string { return [...]string{"unknown", "up", "down"}[t] }

// Tunnel is whether a node answers.
func (w *View) Tunnel(node string) Tunnel {
	w.noteRead(KindTunnel, node)
	return w.tunnels[node]
}

// SetTunnel replaces whether a node answers.
func (w *World) SetTunnel(node string, t Tunnel) {
	setFact(w, KindTunnel, node, w.tunnels, node, t)
}

// Alive says whether packets sent to a node have a chance. Whether the node answers over the tunnel decides, in both
// directions: a node whose kubelet does not reach the API server forwards all the same. Where the tunnel says nothing,
// Kubernetes does. A node is alive to itself.
func (w *View) Alive(node string) bool {
	n := w.Node(node)
	if n == nil {
		return false
	}
	switch t := w.Tunnel(node); {
	case node == w.Self || t == TunnelUp:
		return true
	case t == TunnelDown:
		return false
	}
	return n.Ready
}

// AssignableLabel on a node, with any value, lets it host egress IPs.
const AssignableLabel = "k8s.ovn.org/egress-assignable"

// Hosts says whether packets of other nodes' pods may go to a node to leave there: it is an egress node, or it still
// holds an egress IP.
func (w *View) Hosts(node string) bool {
	n := w.Node(node)
	if n == nil {
		return false
	}
	if _, labelled := n.Labels[AssignableLabel]; labelled {
		return true
	}
	w.noteRead(KindHosts, node)
	return w.holdings[node].holdsAny(n.BootID)
}

func (h *Holding) holdsAny(boot string) bool {
	if h == nil || h.BootID != boot {
		return false
	}
	for _, ips := range h.Holds {
		if len(ips) > 0 {
			return true
		}
	}
	return false
}

// noteHosting follows a change of what a node says it holds.
func (w *World) noteHosting(node string, old, new *Holding) {
	n := w.nodes[node]
	if n == nil || old.holdsAny(n.BootID) == new.holdsAny(n.BootID) {
		return
	}
	w.noteChanged(KindHosts, node)
}
