package world

import (
	"net/netip"
	"slices"
	"time"
)

// unsaidFor is how long an address may still be translated to by a node that was named for it, is not any more, and
// never said that it holds it: a busy one has not read that yet, or has not written yet what it did. A healthy one
// takes some tens of milliseconds. Once it says so, its own word counts (heldAt).
const unsaidFor = 10 * time.Second

// unsaid is a node that was named for an address of an object, and has not said that it holds it.
type unsaid struct {
	at    HeldFor
	named bool      // it still is
	ended time.Time // when it no longer was; zero: since the last Pass
}

// free says whether it holds nothing any more, whatever it did.
func (u unsaid) free(now time.Time) bool { return !u.named && !now.Before(u.ended.Add(unsaidFor)) }

// Pass lets time pass, as far as it has a part in who may hold what. It returns when to pass again though nothing
// changes; zero: not.
func (w *World) Pass(now time.Time) (touched []Touch, again time.Time) {
	for ip, list := range w.unsaid {
		for i := range list {
			if u := &list[i]; u.ended.IsZero() || u.ended.After(now) { // the clock was set back
				u.ended = now
			}
		}
		left := slices.DeleteFunc(list, func(u unsaid) bool { return u.free(now) })
		if len(left) < len(list) {
			w.setUnsaid(ip, left)
			touched = append(touched, heldTouch(ip))
		}
		for _, u := range left {
			if end := u.ended.Add(unsaidFor); !u.named && (again.IsZero() || end.Before(again)) {
				again = end
			}
		}
	}
	return touched, again
}

// named follows which nodes an object's status names for its addresses. Agents do not read it.
func (w *World) named(object string, old, new []Assignment) (touched []Touch) {
	if w.Self != "" {
		return nil
	}
	for _, i := range old {
		if !slices.Contains(new, i) {
			touched = append(touched, w.noteNamed(object, i, false)...)
		}
	}
	for _, i := range new {
		if !slices.Contains(old, i) {
			touched = append(touched, w.noteNamed(object, i, true)...)
		}
	}
	return touched
}

func (w *World) noteNamed(object string, i Assignment, named bool) []Touch {
	at := HeldFor{Node: i.Node, Object: object, Unsaid: true}
	list := w.unsaid[i.IP]
	known := slices.IndexFunc(list, func(u unsaid) bool { return u.at == at })
	switch {
	case known >= 0:
		list[known].named, list[known].ended = named, time.Time{}
	case named && !slices.Contains(w.heldAt[i.IP], HeldFor{Node: i.Node, Object: object}):
		w.unsaid[i.IP] = append(list, unsaid{at: at, named: true})
	default:
		return nil
	}
	return []Touch{heldTouch(i.IP)}
}

// hasSaid forgets what a node had not said, for it says so now.
func (w *World) hasSaid(ip netip.Addr, h HeldFor) {
	h.Unsaid = true
	w.setUnsaid(ip, slices.DeleteFunc(w.unsaid[ip], func(u unsaid) bool { return u.at == h }))
}

func (w *World) setUnsaid(ip netip.Addr, list []unsaid) {
	if w.unsaid[ip] = list; len(list) == 0 {
		delete(w.unsaid, ip)
	}
}
