package world

// Overdue is the node that this one has waited for in vain to say that it holds an address: its pods are not led there
// before it does. "" stands for no node.
func (w *View) Overdue(c EgressAddress) string {
	w.noteRead(KindHolders, c.Object)
	return w.overdue[c]
}

// SetOverdue notes that this node waits no longer for another to say that it holds an address, or with "" that none is
// overdue.
func (w *World) SetOverdue(c EgressAddress, node string) {
	setFact(w, KindHolders, c.Object, w.overdue, c, node)
}
