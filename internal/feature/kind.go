// Package feature describes to Egret's programs what is served for a kind of object.
//
// In: a Kind from each feature's folder. Out: the lists that the agent, the controller, explain and CNI ADD ask for.
// Package all puts the kinds together.
package feature

import (
	"slices"

	"github.com/egret-net/egret/internal/compile"
	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/decide/handover"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// Kind is all that a feature says of its kind of object. Each part may be left out.
type Kind struct {
	// Resources bring objects from the API into the world, and say how they are written. All programs follow them.
	Resources []kube.Kind
	// Table makes a world keep the objects; nil: package world keeps them.
	Table func(*world.World)
	// Features compile the rows of a node.
	Features []compile.Feature
	// NewDeciders returns the deciders of one term, in the order in which they decide. All count the same pods.
	NewDeciders func(*handover.Pods) []decide.Decider
	// Reads are the objects that a starting pod's node must have seen as they were when the pod started.
	Reads []Read
	// Awaited returns the object with a claim to a pod's packets that no node serves yet; zero without such an object.
	// A starting pod waits for it, and then starts with its traffic to outside the cluster dropped.
	Awaited func(w *world.View, pod string) ref.Object
	// Refuse returns why a pod cannot start, and what to do; "": it can. It is called after Reads have been taken into
	// the world.
	Refuse func(w *world.View, namespace, pod string) string
	// Explain says in lines of text what objects of the kind do with a pod's packet, which ends there; "" for nothing.
	Explain func(w *world.World, pod *world.Pod, ends []trace.End) string
}

// Read is a list of objects that CNI ADD asks the API server for.
type Read struct {
	Resource kube.Kind
	// InNamespace limits the list to the pod's namespace.
	InNamespace bool
	// If says, once the unconditional reads are in the world, whether a namespace needs this one; nil: each does.
	If func(w *world.World, namespace string) bool
}

// Kinds are all kinds that programs serve, in the order in which they decide.
type Kinds []Kind

// AllFeatures are those of all kinds.
func (k Kinds) AllFeatures() (all []compile.Feature) {
	for _, one := range k {
		all = append(all, one.Features...)
	}
	return all
}

// AllResources are those of all kinds.
func (k Kinds) AllResources() (all []kube.Kind) {
	for _, one := range k {
		all = append(all, one.Resources...)
	}
	return all
}

// NewDeciders are the deciders of one term.
func (k Kinds) NewDeciders() (all []decide.Decider) {
	pods := handover.NewPods()
	for _, one := range k {
		if one.NewDeciders != nil {
			all = append(all, one.NewDeciders(pods)...)
		}
	}
	return all
}

// AllReads are those of all kinds.
func (k Kinds) AllReads() (all []Read) {
	for _, one := range k {
		all = append(all, one.Reads...)
	}
	return all
}

// NewWorld is a world of a node, or of none (""), with the tables of all kinds.
func (k Kinds) NewWorld(self string, c *world.Config) *world.World {
	w := world.New(self, c)
	for _, one := range k {
		if one.Table != nil {
			one.Table(w)
		}
	}
	return w
}

// AwaitedObject returns the object that a starting pod waits for; zero without such an object. The last kind decides
// first.
func (k Kinds) AwaitedObject(w *world.View, pod string) ref.Object {
	for _, one := range slices.Backward(k) {
		if one.Awaited == nil {
			continue
		}
		if object := one.Awaited(w, pod); object != (ref.Object{}) {
			return object
		}
	}
	return ref.Object{}
}

// RefusePod says why a pod cannot start, and what to do; "": it can.
func (k Kinds) RefusePod(w *world.View, namespace, pod string) string {
	for _, one := range k {
		if one.Refuse == nil {
			continue
		}
		if text := one.Refuse(w, namespace, pod); text != "" {
			return text
		}
	}
	return ""
}

// ExplainPacket says what objects of all kinds do with a pod's packet, in lines of text.
func (k Kinds) ExplainPacket(w *world.World, pod *world.Pod, ends []trace.End) (text string) {
	for _, one := range k {
		if one.Explain != nil {
			text += one.Explain(w, pod, ends)
		}
	}
	return text
}
