package world

import (
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/ref"
)

// unsaidFor is how long an address may still be translated to by a node that was named for it, is not any more, and
// never said that it holds it: a busy one has not read that yet, or has not written yet what it did. A healthy one
// takes some tens of milliseconds. Once it says so, its own word counts (heldAt).
const unsaidFor = 10 * time.Second

// unsaid is a node that was assigned an address of an object and has not reported that assignment. Its reports about a
// previous assignment, or from before its boot, do not count for this one.
type unsaid struct {
	at    HeldFor
	given ref.Since
	named bool      // it still is
	ended time.Time // when it no longer was; zero: since the last Pass
}

// endTime is when it holds nothing any more, whatever it did.
func (u unsaid) endTime() time.Time { return u.ended.Add(unsaidFor) }

// Pass lets time pass, as far as it has a part in who may hold what. It returns when to pass again though nothing
// changes; zero: not.
func (w *World) Pass(now time.Time) (again time.Time) {
	for ip := range w.ending {
		list := w.unsaid[ip]
		left := slices.DeleteFunc(list, func(u unsaid) bool {
			return !u.named && !u.ended.IsZero() && !now.Before(u.endTime())
		})
		if len(left) < len(list) {
			w.noteHeldAt(ip)
		}
		w.setUnsaid(ip, left)
		for i := range left {
			u := &left[i]
			if u.named {
				continue
			}
			if u.ended.IsZero() || u.ended.After(now) { // the clock was set back
				u.ended = now
			}
			if again.IsZero() || u.endTime().Before(again) {
				again = u.endTime()
			}
		}
	}
	return again
}

// updateNaming follows which nodes an object's status names for its addresses. Agents do not read it.
func (w *World) updateNaming(object string, old, new Placement) {
	if w.Self != "" {
		return
	}
	w.updateNamedHolders(object, &old, &new)
	for _, i := range old.Items {
		if !slices.Contains(new.Items, i) {
			w.noLongerNamed(object, i)
		}
	}
	for _, i := range new.Items {
		if !slices.Contains(old.Items, i) || old.Since(i) != new.Since(i) {
			w.noteNamed(object, i, new.Since(i))
		}
	}
}

// noteNamed notes that a node is named for an address, if it has not said already that it holds it as it is given.
func (w *World) noteNamed(object string, i Assignment, given ref.Since) {
	if w.saysSince(object, i, given) {
		return
	}
	at := HeldFor{Node: i.Node, Object: object, Unsaid: true}
	u := unsaid{at: at, given: given, named: true}
	list := w.unsaid[i.IP]
	if known := slices.IndexFunc(list, func(u unsaid) bool { return u.at == at }); known >= 0 {
		list[known] = u
	} else {
		w.unsaid[i.IP] = append(list, u)
	}
	w.noteHeldAt(i.IP)
}

func (w *World) noLongerNamed(object string, i Assignment) {
	for k, u := range w.unsaid[i.IP] {
		if u.at.Node == i.Node && u.at.Object == object {
			w.unsaid[i.IP][k].named = false
			w.ending[i.IP] = struct{}{}
			w.noteHeldAt(i.IP)
			return
		}
	}
}

// saysSince says whether a node says since its last boot that it holds an address as it was given. An agent older than
// status.holding[].since does not report the time.
func (w *World) saysSince(object string, i Assignment, given ref.Since) bool {
	h, n := w.holdings[i.Node], w.nodes[i.Node]
	if h == nil || n == nil || h.BootID != n.BootID || !slices.Contains(h.Holds[object], i.IP) {
		return false
	}
	since := h.Held(object, i.IP)
	return since == 0 || since >= given
}

// hasSaid removes a node's missing report if it is there now; false if no report was missing.
func (w *World) hasSaid(object string, i Assignment) bool {
	at, list := HeldFor{Node: i.Node, Object: object, Unsaid: true}, w.unsaid[i.IP]
	left := slices.DeleteFunc(list, func(u unsaid) bool { return u.at == at && w.saysSince(object, i, u.given) })
	w.setUnsaid(i.IP, left)
	return len(left) < len(list)
}

// letGo notes that a node says no more that it holds an address. If nothing says so but that its EgressNode is gone, it
// may hold it still.
func (w *World) letGo(object string, i Assignment, given ref.Since, gone bool) {
	p := w.PlacementOf(object)
	named := p != nil && slices.Contains(p.Items, i)
	if named {
		given = p.Since(i)
	}
	if named || gone {
		w.noteNamed(object, i, given)
	}
	if !named {
		w.noLongerNamed(object, i)
	}
}

// recheckBoot looks again at what a node said: it is its word if it said so since it booted.
func (w *World) recheckBoot(node string) {
	for object, ips := range w.holdings[node].holdsOrNone() {
		for _, ip := range ips {
			i := Assignment{Node: node, IP: ip}
			if w.hasSaid(object, i) {
				w.noteHeldAt(ip)
			}
			if p := w.PlacementOf(object); p != nil && slices.Contains(p.Items, i) {
				w.noteNamed(object, i, p.Since(i))
			}
		}
	}
}

func (w *World) setUnsaid(ip netip.Addr, list []unsaid) {
	if w.unsaid[ip] = list; len(list) == 0 {
		delete(w.unsaid, ip)
	}
	if !slices.ContainsFunc(list, func(u unsaid) bool { return !u.named }) {
		delete(w.ending, ip)
	}
}
