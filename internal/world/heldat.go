package world

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/ref"
)

// HeldFor is an object, by its key, that a node says it holds an address for, or may hold it for and has not said so.
type HeldFor struct {
	Node, Object string
	Unsaid       bool
}

// HeldBefore says whether a node's claim to an address is of a former object of the same key, by UID, or by the time
// when the present one was made. It does not record: a change of a node's words changes HeldAt. The time alone is not
// enough: the controller's clock, by which an address is given, may be ahead of the API server's.
func (w *World) HeldBefore(node, object string, ip netip.Addr, uid string, made time.Time) bool {
	h := w.holdings[node]
	said, since := h.heldUID(object, ip), h.Held(object, ip)
	if said != "" {
		return said != ShortUID(uid)
	}
	return since != 0 && since < ref.SinceTime(made)
}

// ShortUID returns the start of a UID: enough to tell two objects of one key apart. All agents receive it with each
// report of a holder.
func ShortUID(uid string) string { return uid[:min(len(uid), 4)] }

func (h *Holding) heldUID(object string, ip netip.Addr) string {
	if h == nil {
		return ""
	}
	return h.HeldUID[EgressAddress{object, ip}]
}

// HeldAt are the nodes that say since their last boot that they hold an address, with the objects, sorted,
// whether or not any status names them for it; and those that a status names for it, or did a moment ago, and that have
// not said yet whether they do. Only the controller knows of any.
func (w *View) HeldAt(ip netip.Addr) []HeldFor {
	w.noteRead(KindHeldAt, ip.String())
	var out []HeldFor
	for h := range w.heldAt[ip] {
		if n := w.Node(h.Node); n != nil && w.holdings[h.Node].bootOrNone() == n.BootID {
			out = append(out, h)
		}
	}
	for _, u := range w.unsaid[ip] {
		if w.Node(u.at.Node) != nil {
			out = append(out, u.at)
		}
	}
	slices.SortFunc(out, func(a, b HeldFor) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Object, b.Object))
	})
	return out
}

// MostStanding is how many addresses that no status names it for one node can keep from others by its own word.
const MostStanding = 64

// Overclaims says whether a node says that it holds more than MostStanding addresses that no status names it for. Only
// the controller knows of any.
func (w *View) Overclaims(node string) bool {
	w.noteRead(KindOverclaims, node)
	return w.unnamed[node] > MostStanding
}

// recountUnnamed notes how many addresses a node says that it holds unnamed. It is a count, and not computed where it
// is read: each status that changes would have all addresses of a node counted.
func (w *World) recountUnnamed(node string, n int) {
	before := w.unnamed[node]
	if w.unnamed[node] = n; n == 0 {
		delete(w.unnamed, node)
	}
	if n > MostStanding != (before > MostStanding) {
		w.noteChanged(KindOverclaims, node)
	}
}

// updateNamedHolders follows which of the addresses that nodes say they hold for an object its status names them for.
func (w *World) updateNamedHolders(object string, old, new *Placement) {
	nodes := map[string]struct{}{}
	for _, p := range [...]*Placement{old, new} {
		for _, i := range p.Items {
			nodes[i.Node] = struct{}{}
		}
		for _, l := range p.Leaving {
			nodes[l.Node] = struct{}{}
		}
	}
	for node := range nodes {
		ips := w.holdings[node].holdsOrNone()[object]
		if more := unnamedBy(new, node, ips) - unnamedBy(old, node, ips); more != 0 {
			w.recountUnnamed(node, w.unnamed[node]+more)
		}
	}
}

// unnamedBy counts the addresses that a node says it holds for an object, and that a placement does not name it for.
func unnamedBy(p *Placement, node string, ips []netip.Addr) (n int) {
	for _, ip := range ips {
		if p == nil || !p.Names(node, ip) {
			n++
		}
	}
	return n
}

// heldMoved follows what a node says that it holds, address by address. Agents do not read it.
func (w *World) heldMoved(node string, old, new *Holding) {
	if w.Self != "" {
		return
	}
	for object := range unionKeys(old.holdsOrNone(), new.holdsOrNone()) {
		before, now := setOf(old.holdsOrNone()[object]), setOf(new.holdsOrNone()[object])
		for ip := range unionKeys(before, now) {
			_, was := before[ip]
			_, is := now[ip]
			i := Assignment{Node: node, IP: ip}
			w.noteHeld(object, i, is)
			if was && !is {
				w.letGo(object, i, old.Held(object, ip), new == nil)
			}
			anew := was != is || old.Held(object, ip) != new.Held(object, ip) ||
				old.heldUID(object, ip) != new.heldUID(object, ip) || old.bootOrNone() != new.bootOrNone()
			if said := is && w.hasSaid(object, i); said || anew {
				w.noteHeldAt(ip)
			}
		}
	}
	n, silent := 0, w.View
	silent.reader = nil
	for object, ips := range new.holdsOrNone() {
		n += unnamedBy(silent.PlacementOf(object), node, ips)
	}
	w.recountUnnamed(node, n)
}

func (w *World) noteHeld(object string, i Assignment, is bool) {
	h := HeldFor{Node: i.Node, Object: object}
	if !is {
		if delete(w.heldAt[i.IP], h); len(w.heldAt[i.IP]) == 0 {
			delete(w.heldAt, i.IP)
		}
		return
	}
	if w.heldAt[i.IP] == nil {
		w.heldAt[i.IP] = map[HeldFor]struct{}{}
	}
	w.heldAt[i.IP][h] = struct{}{}
}

// setOf is a list as a set: a node decides how long what it says is.
func setOf(list []netip.Addr) map[netip.Addr]struct{} {
	out := make(map[netip.Addr]struct{}, len(list))
	for _, a := range list {
		out[a] = struct{}{}
	}
	return out
}

func (w *World) noteHeldAt(ip netip.Addr) { w.noteChanged(KindHeldAt, ip.String()) }
