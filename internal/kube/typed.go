package kube

import (
	"slices"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/ref"
)

// An agent that knows nothing of the typed entries of EgressNodeStatus leaves them as they are when it writes the
// object: after a downgrade they say what was. So they count where they are of the same write as the old entries,
// which is when they say the same.

// heldAddresses returns all that a status says is held, in the typed form. An agent of the previous version repeats
// there what holding says.
func heldAddresses(s *egretv1.EgressNodeStatus) []egretv1.HeldAddress {
	old := typedHolding(s.Holding)
	said, others := saidByHolding(s.HeldAddresses)
	switch {
	case len(said) == 0:
		return slices.Concat(old, others)
	case slices.Equal(said, old):
		return s.HeldAddresses
	}
	return old
}

// typedHolding has holding's entries in the form of heldAddresses.
func typedHolding(holding []egretv1.Held) []egretv1.HeldAddress {
	out := make([]egretv1.HeldAddress, len(holding))
	for i, h := range holding {
		out[i] = egretv1.HeldAddress{Kind: ref.EgressIP, Name: h.EgressIP, Network: ref.DefaultNetwork, IP: h.IP,
			Since: h.Since}
	}
	return out
}

// keyOfHeld is the key of the object that a typed entry is about, where this program knows its kind.
func keyOfHeld(a egretv1.HeldAddress) (key string, known bool) {
	key, known = objectKey(ref.Object{Kind: a.Kind, Namespace: a.Namespace, Name: a.Name})
	return key, known && a.Network == ref.DefaultNetwork
}

// objectKey is by what a world.Holding knows an object, where it is of a kind that it knows, and no other has that key.
func objectKey(o ref.Object) (key string, known bool) {
	return o.Key(), ref.OfKey(o.Key()) == o
}

// saidByHolding divides typed entries into those that holding can say and others.
func saidByHolding(list []egretv1.HeldAddress) (said, others []egretv1.HeldAddress) {
	for _, a := range list {
		if a.Kind == ref.EgressIP && a.Network == ref.DefaultNetwork {
			said = append(said, a)
		} else {
			others = append(others, a)
		}
	}
	return said, others
}
