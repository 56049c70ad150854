package world

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/ref"
)

// An address belongs to one pod alone. A pod that claims another's address would draw that pod's packets to its own
// EgressIP, or have them dropped. On a pod's own node it is the attachment's, which nobody but its agent makes.
// Elsewhere, of the pods of one node that say that they have it, it is the first one's by pod.before; all nodes see the
// same, whenever their agents started.

// podAddress is an address in a network that pods of a node say they have.
type podAddress struct {
	node, network string
	ip            netip.Addr
}

// claimedAddresses are those that a pod says it has; none of nil. One that has completed has given them up.
func (p *Pod) claimedAddresses() iter.Seq[podAddress] {
	return func(yield func(podAddress) bool) {
		if p == nil || p.HostNetwork || p.Completed {
			return
		}
		for _, ip := range p.IPs {
			if !yield(podAddress{p.Node, ref.DefaultNetwork, ip}) {
				return
			}
		}
		for _, i := range p.Further {
			for _, ip := range i.IPs {
				if !yield(podAddress{p.Node, i.Network, ip}) {
					return
				}
			}
		}
	}
}

func (p *Pod) claimsAddress(a podAddress) bool {
	for own := range p.claimedAddresses() {
		if own == a {
			return true
		}
	}
	return false
}

// isSamePod says whether two are states of one pod, or pods that follow each other under one name.
func (p *Pod) isSamePod(o *Pod) bool { return p.Namespace == o.Namespace && p.Name == o.Name }

// compareAddressTitle orders pods that say that they have one address. An agent gives the address of a pod that is
// going away to another as soon as the former is detached, and its object may be there for longer. Of the others, it is
// that of which its kubelet says so, too, and not only an annotation; then the older one's.
func (p *Pod) compareAddressTitle(o *Pod) int {
	return cmp.Or(orderLast(p.Terminating, o.Terminating), orderLast(o.Confirmed, p.Confirmed),
		p.Created.Compare(o.Created), cmp.Compare(p.UID, o.UID), cmp.Compare(p.Namespace, o.Namespace),
		cmp.Compare(p.Name, o.Name))
}

// orderLast orders what is so behind what is not.
func orderLast(p, o bool) int {
	switch {
	case p == o:
		return 0
	case p:
		return 1
	}
	return -1
}

// updatePodAddresses follows the addresses that a pod says it has, and notes the pods that gain or lose one by it.
func (w *World) updatePodAddresses(old, now *Pod) {
	for a := range old.claimedAddresses() {
		if !now.claimsAddress(a) {
			w.giveUp(a, old)
		}
	}
	for a := range now.claimedAddresses() {
		w.noteAddressClaim(a, now)
	}
}

// noteAddressClaim notes that a pod says that it has an address, which most have alone.
func (w *World) noteAddressClaim(a podAddress, p *Pod) {
	was := w.rivals[a]
	if was == nil {
		only := w.podsAt[a]
		if w.podsAt[a] = p; only == nil || only.isSamePod(p) {
			return
		}
		was = []*Pod{only}
	}
	w.replaceRivals(a, was, append(withoutPod(was, p), p))
}

// giveUp notes that a pod does not say any more that it has an address.
func (w *World) giveUp(a podAddress, p *Pod) {
	was := w.rivals[a]
	if was == nil {
		if only := w.podsAt[a]; only != nil && only.isSamePod(p) {
			delete(w.podsAt, a)
		}
		return
	}
	w.replaceRivals(a, was, withoutPod(was, p))
}

// replaceRivals replaces the pods that say that they have an address, and notes them if it becomes another one's, or
// one's alone.
func (w *World) replaceRivals(a podAddress, was, now []*Pod) {
	slices.SortFunc(now, (*Pod).compareAddressTitle)
	w.rivals[a], w.podsAt[a] = now, now[0]
	if len(now) == 1 {
		delete(w.rivals, a)
	}
	if was[0].isSamePod(now[0]) && len(now) > 1 && len(was) > 1 {
		return
	}
	for _, p := range now {
		w.noteChanged(KindPod, p.Key())
	}
}

// withoutPod are some pods without one.
func withoutPod(pods []*Pod, p *Pod) []*Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(o *Pod) bool { return o.isSamePod(p) })
}

// attachmentChanged follows the addresses of this node's attachments, and notes the pods that gain or lose them.
func (w *World) attachmentChanged(old, now *Attachment) {
	key := cmp.Or(now, old).Key()
	for a := range old.podAddresses(w.Self) {
		removeFromIndex(w.attachedAt, a, key)
		w.noteAddressAt(a, old)
		w.noteAttachedAt(a)
	}
	for a := range now.podAddresses(w.Self) {
		w.attachedAt[a] = append(withoutString(w.attachedAt[a], key), key)
		w.noteAddressAt(a, now)
		w.noteAttachedAt(a)
	}
}

func (w *World) noteAttachedAt(a podAddress) {
	if a.network == ref.DefaultNetwork {
		w.noteChanged(KindAttachedAt, a.ip.String())
	}
}

// HasOwnNetwork says whether an address in the default network is that of a pod of this node whose namespace has, or
// asks for, a network of its own.
func (w *View) HasOwnNetwork(ip netip.Addr) bool {
	w.noteRead(KindAttachedAt, ip.String())
	return slices.ContainsFunc(w.attachedAt[podAddress{w.Self, ref.DefaultNetwork, ip}], func(key string) bool {
		return w.PrimaryNetwork(w.attachments[key].Namespace) != ref.DefaultNetwork
	})
}

// podAddresses are those of an attachment on a node; none of nil.
func (a *Attachment) podAddresses(node string) iter.Seq[podAddress] {
	return func(yield func(podAddress) bool) {
		if a == nil {
			return
		}
		for _, i := range a.Interfaces() {
			for _, ip := range i.IPs {
				if !yield(podAddress{node, i.Network, ip}) {
					return
				}
			}
		}
	}
}

// belongsTo says whether it belongs to a pod, and not to a previous one with its name.
func (a *Attachment) belongsTo(p *Pod) bool {
	return a.UID == p.UID && a.Namespace == p.Namespace && a.Name == p.Name
}

// noteAddressAt notes the pods that say that they have an address that an attachment gets or gives up. A pod that has
// it alone, as its attachment does, is not in the list: an undisputed address costs nothing.
func (w *World) noteAddressAt(a podAddress, at *Attachment) {
	pods, disputed := w.rivals[a], len(withoutString(w.attachedAt[a], at.Key())) > 0
	if only := w.podsAt[a]; pods == nil && only != nil && (disputed || !at.belongsTo(only)) {
		pods = []*Pod{only}
	}
	for _, p := range pods {
		w.noteChanged(KindPod, p.Key())
	}
}

// ownerOf is whose an address is that a pod says it has, "namespace/name"; "" if it is the pod's own.
func (w *View) ownerOf(a podAddress, p *Pod) string {
	if at := w.attachedAt[a]; len(at) > 0 && p.Node == w.Self {
		if slices.ContainsFunc(at, func(key string) bool { return w.attachments[key].belongsTo(p) }) {
			return ""
		}
		return at[0]
	}
	if list := w.rivals[a]; list != nil && !list[0].isSamePod(p) {
		return list[0].Key()
	}
	return ""
}

// ClaimedAddrs returns the addresses, in each network that is known, that packets of a pod of this node have, or that
// other nodes take for the pod's: while a pod's successor is attached with its address, both pods.
func (w *View) ClaimedAddrs(p *Pod) (out []PodAddr) {
	w.noteRead(KindPod, p.Key())
	add := func(a podAddress) {
		if n := w.Network(a.network); n != nil && !slices.Contains(out, PodAddr{n.ID, a.ip}) {
			out = append(out, PodAddr{n.ID, a.ip})
		}
	}
	for a := range p.claimedAddresses() {
		if list := w.rivals[a]; list == nil || list[0].isSamePod(p) {
			add(a)
		}
	}
	if at := w.Attachment(p.Key()); at != nil && at.UID == p.UID && p.Node == w.Self {
		for a := range at.podAddresses(w.Self) {
			add(a)
		}
	}
	return out
}

// TakenAddress is one that a pod says it has, and that is another's, "namespace/name".
type TakenAddress struct {
	IP    netip.Addr
	Owner string
}

// Taken are the addresses that a pod says it has and that are others'. A change of the answer changes the pod.
func (w *View) Taken(p *Pod) (out []TakenAddress) {
	w.noteRead(KindPod, p.Key())
	for a := range p.claimedAddresses() {
		if owner := w.ownerOf(a, p); owner != "" {
			out = append(out, TakenAddress{a.ip, owner})
		}
	}
	return out
}

// Attachments lists the pods that have a port on this node, "namespace/name".
func (w *View) Attachments() []string {
	w.noteRead(KindAttachments, "")
	return slices.Sorted(maps.Keys(w.attachments))
}

// Attachment is a pod's port on this node, or nil.
func (w *View) Attachment(key string) *Attachment {
	w.noteRead(KindAttachment, key)
	return w.attachments[key]
}

// SetAttachment adds or replaces a pod's port.
func (w *World) SetAttachment(a *Attachment) { Set(w, KindAttachment, a) }

// DelAttachment removes a pod's port, unless a newer one of the same pod has taken its place.
func (w *World) DelAttachment(key, hostIface string) {
	if a := w.attachments[key]; a == nil || a.HostIface != hostIface {
		return
	}
	Del[Attachment](w, KindAttachment, key)
}
