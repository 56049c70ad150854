package world

import "strconv"

// FirstMark and LastMark are the marks that packets of EgressIPs can have, as in OVN-Kubernetes.
const (
	FirstMark = 50000
	LastMark  = 55000
)

// MarkOf returns the mark that packets of an EgressIP have on their way out of networks of users, until they are
// translated; 0: it has none. If two EgressIPs have one mark, the older has it, as the controller decides.
func (w *View) MarkOf(egressIP string) int {
	e := w.EgressIP(egressIP)
	if e == nil || e.Mark == 0 {
		return 0
	}
	w.noteRead(KindMarked, strconv.Itoa(e.Mark))
	for _, name := range w.marked[e.Mark] {
		if ByPrecedence(w.egressIPs[name], e) < 0 {
			return 0
		}
	}
	return e.Mark
}

// noteMarked follows which EgressIPs have which mark, and their order.
func (w *World) noteMarked(old, now *EgressIP) {
	if old != nil && now != nil && old.Mark == now.Mark && ByPrecedence(old, now) == 0 {
		return
	}
	for _, e := range []*EgressIP{old, now} {
		if e != nil && e.Mark != 0 {
			NoteInIndex(w.marked, e.Mark, e.Name, e == now)
			w.noteChanged(KindMarked, strconv.Itoa(e.Mark))
		}
	}
}
