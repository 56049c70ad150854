package world

// Unreachability is why a node does not count as reachable, as the controller's probes see it; "" if it does.
type Unreachability string

const (
	// NodeUnreachable: the host was silent for the whole of Config.ReachabilityTimeout.
	NodeUnreachable Unreachability = "NodeUnreachable"
	// AgentAway: the host answers, and its agent has not done so for longer than a restart takes.
	AgentAway Unreachability = "AgentAway"
)

// Unreachable is why a node does not count as reachable. Only the controller knows of any.
func (w *View) Unreachable(node string) Unreachability {
	w.noteRead(KindReach, node)
	return w.unreachable[node]
}

// SetUnreachable says why a node does not count as reachable, or "" that it does.
func (w *World) SetUnreachable(node string, why Unreachability) {
	setFact(w, KindReach, node, w.unreachable, node, why)
}

// NotAnswering says whether a node that is probed has not answered yet, or does not answer now, and the controller
// cannot tell whether it lives. It is given nothing new. It keeps what it has, or if it counts as unreachable, what no
// other node takes.
func (w *View) NotAnswering(node string) bool {
	w.noteRead(KindReach, node)
	return w.notAnswering[node]
}

// SetNotAnswering says that a node has not answered, or that it has.
func (w *World) SetNotAnswering(node string, notAnswering bool) {
	setFact(w, KindReach, node, w.notAnswering, node, notAnswering)
}
