package world

// Unnamed is how many addresses a node says that it holds and no status names it for: as the world has counted them as
// it went, and as they are counted now.
func (w *World) Unnamed(node string) (kept, counted int) {
	silent := w.View
	silent.reader = nil
	for object, ips := range w.holdings[node].holdsOrNone() {
		counted += unnamedBy(silent.PlacementOf(object), node, ips)
	}
	return w.unnamed[node], counted
}

// Indexed is how many labels the pods of a namespace are indexed by.
func (w *World) Indexed(ns string) int { return len(w.podsIn[ns].labelled) }

// ChangesOf returns the entries that change notes as changed.
func (w *World) ChangesOf(change func()) (out []Entry) {
	before := w.followers
	w.FollowChanges(func(e Entry) { out = append(out, e) })
	change()
	w.followers = before
	return out
}

// HasRead returns whether anything was read.
func (r *Reader) HasRead() bool { return len(r.reads) > 0 }
