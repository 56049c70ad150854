// Package decide says what a decider is: pure code that says what objects of the API should be.
//
// In: a world, with decisions instead of what the API shows, and the time. Out: the desired statuses of objects, Events
// about changes, and the time of the next decision. The caller puts desired statuses over its world before it asks the
// next decider, and writes those that the API does not show yet.
package decide

import (
	"net/netip"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// Decider decides about objects of one kind or several. Its memory is of one term: the next leader's decider begins
// with the objects' statuses.
type Decider interface {
	// NoteChanged takes in what changes in the world, by the API and by decisions (world.World.FollowChanges).
	NoteChanged(world.Entry)
	// Seen reports a new version of an object that has a decision. It returns when to decide though nothing else
	// changes; zero: not.
	Seen(v View, object world.Entry) (again time.Time)
	// Decide returns the desired state of objects, in the order in which they must be written. Earlier decisions stand:
	// it need not repeat them. It changes nothing in the world. It returns when to decide though nothing changes; zero:
	// not.
	Decide(v View) (desired []Desired, again time.Time)
}

// View is the world at a time.
type View struct {
	*world.World
	Now time.Time // as exact as the API keeps times: in whole microseconds
}

// Desired is what an object should be.
type Desired struct {
	Kind     world.Kind
	Key      string
	Decision world.Decision
	Events   []Event // to be posted when it is written
}

// Event tells people of one thing that became different.
type Event struct {
	Warning bool
	Reason  string
	Action  string // the decider's action: "Assign"
	Message string
	// IP is the address that it is about, where it is about one.
	IP netip.Addr
	// Cause, of an address that left a node, is why.
	Cause string
	// Happened: it tells of what is so already, not of what will be written. It is posted also where the object says
	// the same as before.
	Happened bool
}

// IgnoresChanges is the part of a decider that does nothing when the world changes.
type IgnoresChanges struct{}

// NoteChanged does nothing.
func (IgnoresChanges) NoteChanged(world.Entry) {}

// Seen does nothing.
func (IgnoresChanges) Seen(View, world.Entry) time.Time { return time.Time{} }

// Earlier returns the first of two times; a zero time does not count.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
