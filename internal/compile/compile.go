// Package compile turns a world into a node's plan, wholly (Full) or only where it changed (Memo).
//
// In: a world.World, and what changes in it. Out: a plan.State. Both are pure, and Memo equals Full after every
// step: that is a property test, not a hope.
package compile

import (
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/world"
)

// Feature compiles one kind of thing into the rows that this node must hold.
type Feature interface {
	// Name is part of the owner of every row: "egressip".
	Name() string
	// Per is the kind of object that is compiled one by one.
	Per() world.Kind
	// Compile adds the rows of one object to out. It reads nothing but w, and does not mind that the object is gone.
	Compile(w *world.View, key string, out *plan.Rows)
}

// Owner is the owner under which a feature's rows for one object stand in a plan.State.
func Owner(w *world.World, f Feature, key string) plan.Owner {
	return plan.Owner{Feature: f.Name(), Object: w.Object(f.Per(), key)}
}

// Full is the specification of a node's state: every row of every feature.
func Full(w *world.World, features []Feature) *plan.State {
	return Some(w, features, nil)
}
