// Package decide says what a decider is: pure code that says what objects of the API should be.
//
// In: a world, with what was decided in the place of what the API shows, and the time. Out: what objects should say,
// the Events that tell people of what became different, and when to ask again. Who asks puts what is desired over his
// world before he asks the next decider, and writes what the API does not show yet.
package decide

import (
	"net/netip"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// Decider decides about objects of one kind or several. What it remembers is of one term: the next leader's begins with
// what the objects say.
type Decider interface {
	// Touched tells of all that changes in the world, by the API and by decisions, in order.
	Touched([]world.Touch)
	// Seen tells of an object, of which something was decided, that the API has shown anew. It returns when to decide
	// though nothing else changes; zero: not.
	Seen(v View, object world.Touch) (again time.Time)
	// Decide says what objects should be, those first that are to be written first. What it has said of an object
	// stands: it need not say it again. It changes nothing in the world. It returns when to decide though nothing
	// changes; zero: not.
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
	Action  string // what the decider does: "Assign"
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

// Touched does nothing.
func (IgnoresChanges) Touched([]world.Touch) {}

// Seen does nothing.
func (IgnoresChanges) Seen(View, world.Touch) time.Time { return time.Time{} }

// Earlier is the first of two times; zero is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
