package world

import "fmt"

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

// WrongValues says which values of Deriveds are not what they would be from nothing, or not computed again yet.
func (w *World) WrongValues() string {
	return wrongValue(w, w.activity) + wrongValue(w, w.overlap) + wrongValue(w, w.primary)
}

func wrongValue[K, V comparable](w *World, d *Derived[K, V]) string {
	for k, one := range d.values {
		if want := d.of(&w.View, k); len(d.stale) > 0 || one.value != want {
			return fmt.Sprintf("%v is %v, want %v; stale: %v", k, one.value, want, d.stale)
		}
		if !d.exists(&w.View, k) {
			return fmt.Sprintf("%v is kept, and is nothing", k)
		}
	}
	return ""
}
