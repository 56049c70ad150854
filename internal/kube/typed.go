package kube

import (
	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/ref"
)

// heldAddresses returns all that a status says is held, in the typed form. An agent of the previous version repeats
// there what holding says.
func heldAddresses(s *egretv1.EgressNodeStatus) []egretv1.HeldAddress {
	out := make([]egretv1.HeldAddress, 0, len(s.Holding)+len(s.HeldAddresses))
	for _, h := range s.Holding {
		out = append(out, egretv1.HeldAddress{Kind: ref.EgressIP, Name: h.EgressIP, Network: ref.DefaultNetwork,
			IP: h.IP, Since: h.Since, UID: h.UID})
	}
	for _, a := range s.HeldAddresses {
		if a.Kind != ref.EgressIP || a.Network != ref.DefaultNetwork {
			out = append(out, a)
		}
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
