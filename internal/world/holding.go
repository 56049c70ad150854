package world

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/ref"
)

// Holds says whether a node holds an egress address of an EgressIP or an EgressService: the object's status names it,
// it says so itself, of this giving and no former one, and it has not been rebooted since. Of itself a node knows
// without asking. A node's report about an address that it was not assigned does not count. Here as in all that follows
// an object is named by its key, as in a Holding.
func (w *View) Holds(node, object string, ip netip.Addr) bool {
	w.noteRead(KindHolders, object)
	p := w.PlacementOf(object)
	if p == nil || !p.Names(node, ip) {
		return false
	}
	h, n := w.holdings[node], w.nodes[node]
	if node == w.Self && w.own != nil {
		h = w.own
	}
	return h != nil && n != nil && h.BootID == n.BootID && slices.Contains(h.Holds[object], ip) &&
		isOf(h.Held(object, ip), p.Since(Assignment{node, ip}))
}

// isOf says whether a claim that repeats since when the address was given is of the giving of which the status says the
// same. An older agent repeats nothing, and an older controller's status says nothing.
func isOf(repeated, said ref.Since) bool { return repeated == 0 || said == 0 || repeated == said }

// SaysItHolds says whether a node says since its last boot that it holds an address that no status names it for, and
// nothing of when it was given that: one that says when speaks of a giving that is over. It does not record.
func (w *World) SaysItHolds(node, object string, ip netip.Addr) bool {
	h, n := w.holdings[node], w.nodes[node]
	return h != nil && n != nil && h.BootID == n.BootID && slices.Contains(h.Holds[object], ip) &&
		h.Held(object, ip) == 0
}

// Holders are the nodes that hold an address of an object, each once, sorted by name.
func (w *View) Holders(object string, ip netip.Addr) []string {
	w.noteRead(KindHolders, object)
	p := w.PlacementOf(object)
	if p == nil {
		return nil
	}
	var out []string
	for _, a := range p.Items {
		if a.IP == ip && w.Holds(a.Node, object, ip) {
			out = append(out, a.Node)
		}
	}
	for _, l := range p.Leaving {
		if l.IP == ip && w.Holds(l.Node, object, ip) {
			out = append(out, l.Node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Steers says whether a node has confirmed that it leads its own pods' packets of a family to exactly these nodes, in
// this boot, and as these were given what they are to hold, not formerly.
func (w *View) Steers(node, object string, f Family, to []Assignment) bool {
	said := w.steeringReports(node, object, f)
	return len(said) == len(to) && !slices.ContainsFunc(to, func(a Assignment) bool {
		return !slices.Contains(said, a) || !w.repeatsAssignment(object, a, w.holdings[node].SteersSince[Of{object, a}])
	})
}

// LedBefore says whether this node led its pods to another for an object that is still there, by an assignment of which
// the object's status says the same, or to which it yielded its own. It does not record.
func (w *World) LedBefore(object string, to Assignment) bool {
	p, own := w.PlacementOf(object), Assignment{w.Self, to.IP}
	return p != nil && (w.repeatsAssignment(object, to, w.holdings[w.Self].SteersSince[Of{object, to}]) ||
		p.Names(own.Node, own.IP))
}

// repeatsAssignment says whether a claim of an assignment is of the giving of which the object's status says the same.
// Where each node is the host, each is given the unspecified addresses.
func (w *View) repeatsAssignment(object string, a Assignment, repeated ref.Since) bool {
	if repeated == 0 {
		return true
	}
	p := w.PlacementOf(object)
	if p != nil && a.IP.IsUnspecified() {
		s := w.EgressService(object)
		return s != nil && s.Host == HostAll && isOf(repeated, p.Since(Assignment{HostAll, a.IP}))
	}
	return p != nil && p.Names(a.Node, a.IP) && isOf(repeated, p.Since(a))
}

// SteersTo says whether a node leads its own pods' packets to another for an address, as far as it has told.
func (w *View) SteersTo(node, object string, to Assignment) bool {
	return slices.Contains(w.steeringReports(node, object, FamilyOf(to.IP)), to)
}

// SteersUntold says whether a node has told as much as a report has room for, and nothing of this object.
func (w *View) SteersUntold(node, object string) bool {
	w.noteRead(KindSteering, object)
	w.noteRead(KindSteering, "")
	h, n := w.holdings[node], w.nodes[node]
	return h != nil && n != nil && h.BootID == n.BootID && h.SteersMore && len(h.Steers[object]) == 0
}

func (w *View) steeringReports(node, object string, f Family) []Assignment {
	w.noteRead(KindSteering, object)
	h, n := w.holdings[node], w.nodes[node]
	if h == nil || n == nil || h.BootID != n.BootID {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(h.Steers[object]), func(a Assignment) bool { return FamilyOf(a.IP) != f })
}

// EgressAddress is an address of one EgressIP or EgressService, by its key.
type EgressAddress struct {
	Object string
	IP     netip.Addr
}

// Compare orders by object, then by address.
func (c EgressAddress) Compare(o EgressAddress) int {
	return cmp.Or(cmp.Compare(c.Object, o.Object), c.IP.Compare(o.IP))
}

// Yield is an address that this node held and does not answer for, because another machine does.
type Yield struct {
	To       string // a node; "" if that machine is not one of the cluster's
	Draining bool   // this node still translates to it
}

// Yielded is set if this node yields an address, else nil.
func (w *View) Yielded(egressIP string, ip netip.Addr) *Yield {
	w.noteRead(KindHolders, egressIP)
	return w.yielded[EgressAddress{egressIP, ip}]
}

// EachYielded are all that this node yields, in order.
func (w *View) EachYielded() []EgressAddress {
	w.noteRead(KindYielded, "")
	return slices.SortedFunc(maps.Keys(w.yielded), EgressAddress.Compare)
}

// SetYielded notes that this node yields an address, or with nil that it does not.
func (w *World) SetYielded(c EgressAddress, y *Yield) {
	if old := w.yielded[c]; old == y || old != nil && y != nil && *old == *y {
		return
	}
	if w.yielded[c] = y; y == nil {
		delete(w.yielded, c)
	}
	w.noteChanged(KindHolders, c.Object)
	w.noteChanged(KindYielded, "")
}

// SetOwn replaces what this node knows that it holds, before Kubernetes tells and whatever it tells: the way through
// the API server is long at times, and this node's pods must not wait for it.
func (w *World) SetOwn(h *Holding) {
	old := w.own
	if old == nil {
		old = w.holdings[w.Self]
	}
	w.own = h
	w.noteHolders(w.Self, old, h)
}

// Own is what was last set; nil before. It does not record.
func (w *World) Own() *Holding { return w.own }

// SetHolding replaces what a node says it holds.
func (w *World) SetHolding(h *Holding) {
	old := w.holdings[h.Node]
	w.holdings[h.Node] = h
	w.noteReport(h.Node, old, h)
}

// DelHolding removes what a node said.
func (w *World) DelHolding(node string) {
	old := w.holdings[node]
	delete(w.holdings, node)
	w.noteReport(node, old, nil)
}

// Holding is what a node says it holds, or nil. It does not record.
func (w *World) Holding(node string) *Holding { return w.holdings[node] }

// Problem is what keeps a node from doing its part for an object, in its own words since its last boot; "" if nothing
// does.
func (w *View) Problem(node, object string) string {
	text, _ := w.ProblemReason(node, object)
	return text
}

// ProblemReason is the same, with its reason; "" where the node gave none.
func (w *View) ProblemReason(node, object string) (text, reason string) {
	w.noteRead(KindProblems, object)
	w.noteRead(KindNodeProblem, node)
	h, n := w.holdings[node], w.nodes[node]
	if h == nil || n == nil || h.BootID != n.BootID {
		return "", ""
	}
	if p := h.Problems[object]; p != "" {
		return p, h.Reasons[object]
	}
	return h.Problems[""], h.Reasons[""]
}

// Faults are a node's networks that can host nothing, in its own words.
func (w *View) Faults(node string) map[netip.Prefix]string {
	w.noteRead(KindFaults, node)
	return w.holdings[node].faultsOrNone()
}

func (h *Holding) faultsOrNone() map[netip.Prefix]string {
	if h == nil {
		return nil
	}
	return h.Faults
}

// Conflicts are the addresses of an EgressIP that a node holds and another machine says it has, by that node's word.
func (w *View) Conflicts(node, egressIP string) []Conflict {
	w.noteRead(KindProblems, egressIP)
	h, n := w.holdings[node], w.nodes[node]
	if h == nil || n == nil || h.BootID != n.BootID {
		return nil
	}
	return h.Conflicts[egressIP]
}

// noteWordOf notes every EgressIP of which a node says anything: whether that counts depends on the node.
func (w *World) noteWordOf(node string) {
	h := w.holdings[node]
	w.noteHolders(node, h, nil)
	w.noteProblems(node, h, nil)
	w.noteSteering(h, nil)
	if node == w.Self {
		w.noteHolders(node, w.own, nil)
	}
}

// noteReport follows a change of all that a node says.
func (w *World) noteReport(node string, old, new *Holding) {
	w.noteHolders(node, old, new)
	w.noteProblems(node, old, new)
	w.noteSteering(old, new)
	w.noteHosting(node, old, new)
	w.noteFaults(node, old, new)
	w.heldMoved(node, old, new)
	w.renewDerived()
}

// noteSteering are the EgressIPs whose pods a node leads elsewhere than before. Agents do not read it: it must not
// cost them anything.
func (w *World) noteSteering(old, new *Holding) {
	for name := range unionKeys(old.steersOrNone(), new.steersOrNone()) {
		before, now := old.steersOrNone()[name], new.steersOrNone()[name]
		anew := func(a Assignment) bool { return old.steersSince(name, a) != new.steersSince(name, a) }
		if old.bootOrNone() != new.bootOrNone() || !slices.Equal(before, now) || slices.ContainsFunc(now, anew) {
			w.noteChanged(KindSteering, name)
		}
	}
	if old.steersMore() != new.steersMore() || new.steersMore() && old.bootOrNone() != new.bootOrNone() {
		w.noteChanged(KindSteering, "")
	}
}

// SayHeld notes since when an address that a node holds was given to it; 0: it does not say.
func (h *Holding) SayHeld(object string, ip netip.Addr, since ref.Since) {
	putSince(&h.HeldSince, Of{object, Assignment{h.Node, ip}}, since)
}

// SaySteers notes since when an address that a node steers to was given to the one that holds it; 0: it does not say.
func (h *Holding) SaySteers(object string, to Assignment, since ref.Since) {
	putSince(&h.SteersSince, Of{object, to}, since)
}

func putSince(all *map[Of]ref.Since, of Of, since ref.Since) {
	if since == 0 {
		return
	}
	if *all == nil {
		*all = map[Of]ref.Since{}
	}
	(*all)[of] = since
}

// Held is since when an address that a node holds was given to it; 0 if it does not say.
func (h *Holding) Held(object string, ip netip.Addr) ref.Since {
	if h == nil {
		return 0
	}
	return h.HeldSince[Of{object, Assignment{h.Node, ip}}]
}

func (h *Holding) steersSince(object string, a Assignment) ref.Since {
	if h == nil {
		return 0
	}
	return h.SteersSince[Of{object, a}]
}

func (h *Holding) steersMore() bool { return h != nil && h.SteersMore }

func (h *Holding) steersOrNone() map[string][]Assignment {
	if h == nil {
		return nil
	}
	return h.Steers
}

func unionKeys[K comparable, V any](a, b map[K]V) map[K]struct{} {
	all := map[K]struct{}{}
	for k := range a {
		all[k] = struct{}{}
	}
	for k := range b {
		all[k] = struct{}{}
	}
	return all
}

// noteHolders are the EgressIPs of which a node holds something else than before, by its word, as far as status
// names it for that. The rest costs nobody anything: when status comes to name it, the EgressIP itself is touched,
// which Holds reads too.
func (w *World) noteHolders(node string, old, new *Holding) {
	silent := w.View
	silent.reader = nil
	for name := range unionKeys(old.holdsOrNone(), new.holdsOrNone()) {
		p := silent.PlacementOf(name)
		if p == nil {
			continue
		}
		before, now := p.namedAddresses(node, old.holdsOrNone()[name]), p.namedAddresses(node, new.holdsOrNone()[name])
		anew := func(ip netip.Addr) bool { return old.Held(name, ip) != new.Held(name, ip) }
		if !slices.Equal(before, now) || len(now) > 0 && old.bootOrNone() != new.bootOrNone() ||
			slices.ContainsFunc(now, anew) {
			w.noteChanged(KindHolders, name)
		}
	}
}

func (h *Holding) holdsOrNone() map[string][]netip.Addr {
	if h == nil {
		return nil
	}
	return h.Holds
}

func (h *Holding) bootOrNone() string {
	if h == nil {
		return ""
	}
	return h.BootID
}

// noteProblems are the EgressIPs of which a node reports another problem or conflict than before, and the node
// itself, where it does of all. Agents do not read it: it must not cost them anything.
func (w *World) noteProblems(node string, old, new *Holding) {
	var o, n Holding
	if old != nil {
		o = *old
	}
	if new != nil {
		n = *new
	}
	all := unionKeys(o.Problems, n.Problems)
	maps.Copy(all, unionKeys(o.Conflicts, n.Conflicts))

	for name := range all {
		if o.BootID != n.BootID || o.Problems[name] != n.Problems[name] || o.Reasons[name] != n.Reasons[name] ||
			!slices.Equal(o.Conflicts[name], n.Conflicts[name]) {
			if name == "" {
				w.noteChanged(KindNodeProblem, node)
			} else {
				w.noteChanged(KindProblems, name)
			}
		}
	}
}

// noteFaults follows a change of what a node says of its networks. Its annotation may say the same earlier, or
// later.
func (w *World) noteFaults(node string, old, new *Holding) {
	if maps.Equal(old.faultsOrNone(), new.faultsOrNone()) {
		return
	}
	w.noteChanged(KindFaults, node)
}
