// Package plane is the only place that does I/O on what a node holds: one sub-package a kind of target, each with an
// exported fake. Planes of targets that hold rows, and their fakes, pass one conformance suite (planetest). The others
// have no rows that a new process could find: connections (conntrack), announcements, and sockets (health).
//
// In: a plan.State, everything the node must hold. Out: the target holds it; or an error that names the owners whose
// rows the target refused, so that everybody else's rows are in place all the same.
package plane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/plan"
)

// Plane is one target that holds rows. Every call reads or already knows what the target holds, and applies the
// difference. A second call is free, and a new process adopts what the previous one left. Rows that do not carry our
// mark are never changed.
type Plane interface {
	Name() string
	// Grow adds and changes rows until the target holds all of want.
	Grow(ctx context.Context, want *plan.State) error
	// Shrink removes the rows of ours that want does not have.
	Shrink(ctx context.Context, want *plan.State) error
	// Forget makes the next call read the target again.
	Forget()
}

// Trait is something that the order of planes needs to know of one. Several planes read the argument of Grow at once.
type Trait func(*member)

// After makes a plane grow when those of these names have, and those shrink when it has, whatever becomes of the
// others. A plane without this trait waits for all before it, and they for it.
func After(names ...string) Trait {
	return func(m *member) { m.chooses, m.after = true, names }
}

// Following makes a plane grow when those of these names before it are done, whatever became of them.
func Following(names ...string) Trait {
	return func(m *member) { m.following = names }
}

// Telling is a plane that steers no packet and only tells others what there is. It may stop at once to tell a row that
// the plan no longer has.
func Telling(m *member) { m.telling = true }

// Unawaited is a plane whose Shrink is not part of a round that somebody waits for. The rows that it has left to remove
// give no packet a path or a source that the plan lacks, but for connections that were there before.
func Unawaited(m *member) { m.unawaited = true }

// Ending is a plane that ends connections which packets would go on by as a former plan had it.
func Ending(m *member) { m.ending = true }

// For is p, which holds those tables of a plan and nothing else.
func For(tables plan.Tables, p Plane, traits ...Trait) Plane {
	m := member{Plane: p, tables: tables}
	for _, t := range traits {
		t(&m)
	}
	return m
}

type member struct {
	Plane
	tables    plan.Tables
	chooses   bool // it waits for after alone
	after     []string
	following []string // when it grows
	telling   bool
	unawaited bool
	ending    bool
}

// Concerned are the planes that hold one of the changed tables; those that do not say what they hold are always among
// them.
func Concerned(planes []Plane, changed plan.Tables) []Plane {
	var out []Plane
	for _, p := range planes {
		if m, says := p.(member); !says || m.tables&changed != 0 {
			out = append(out, p)
		}
	}
	return out
}

// TellingOnly are those of planes that have the trait Telling.
func TellingOnly(planes []Plane) []Plane {
	var out []Plane
	for _, p := range planes {
		if m, says := p.(member); says && m.telling {
			out = append(out, p)
		}
	}
	return out
}

// Apply makes before it breaks: Grow, then Shrink. A Grow that was stopped, or is not confirmed, is not followed by a
// Shrink. Refused rows stop nothing; they are returned, joined.
func Apply(ctx context.Context, planes []Plane, want *plan.State) error {
	grown := Grow(ctx, planes, want)
	if !OnlyRefusals(grown) {
		return grown
	}
	return errors.Join(grown, Shrink(ctx, planes, want))
}

// Grow grows planes, which are in the order in which a packet meets them last to first, so that nothing is steered to a
// place that is not ready. Where a plane does not grow, those that wait for it stay as they were, and the others go on.
// Those that do not wait for each other grow at the same time.
func Grow(ctx context.Context, planes []Plane, want *plan.State) error {
	all := make([]*growth, len(planes))
	var running sync.WaitGroup
	for i, p := range planes {
		all[i] = &growth{Plane: p, done: make(chan struct{})}
		if len(planes) == 1 { // in the caller's own thread, and its network namespace
			all[i].runAfter(ctx, want, nil)
			continue
		}
		running.Go(func() { all[i].runAfter(ctx, want, all[:i]) })
	}
	running.Wait()
	var errs []error
	for _, g := range all {
		errs = append(errs, g.err)
	}
	return errors.Join(errs...)
}

// growth is one plane's part of a Grow.
type growth struct {
	Plane
	done   chan struct{}
	behind bool // it does not hold what is wanted
	err    error
}

// runAfter grows the plane when those before it that it waits for are done.
func (g *growth) runAfter(ctx context.Context, want *plan.State, before []*growth) {
	defer close(g.done)
	for _, b := range before {
		needs := waitsFor(g.Plane, b.Name())
		if needs || followsPlane(g.Plane, b.Name()) {
			<-b.done
			g.behind = g.behind || needs && b.behind
		}
	}
	if g.behind {
		return
	}
	g.err = g.Grow(ctx, want)
	if !OnlyRefusals(g.err) {
		g.behind, g.err = true, fmt.Errorf("grow %s: %w", g.Name(), g.err)
	}
}

func waitsFor(p Plane, name string) bool {
	m, says := p.(member)
	return !says || !m.chooses || slices.Contains(m.after, name)
}

func followsPlane(p Plane, name string) bool {
	m, says := p.(member)
	return says && slices.Contains(m.following, name)
}

// Shrink shrinks planes in the opposite order, so that nothing is led to where nothing is any more. It follows a Grow
// that went through, or concerns planes that only tell. Where a plane does not shrink, those that it leads packets to
// stay as they were, and the others go on.
func Shrink(ctx context.Context, planes []Plane, want *plan.State) error {
	var errs []error
	var behind []Plane // planes that hold more than want
	for _, p := range slices.Backward(planes) {
		if neededBy(behind, p.Name()) {
			behind = append(behind, p)
			continue
		}
		err := p.Shrink(ctx, want)
		if !OnlyRefusals(err) {
			behind = append(behind, p)
			err = failedShrink(p, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func neededBy(planes []Plane, name string) bool {
	return slices.ContainsFunc(planes, func(p Plane) bool { return waitsFor(p, name) })
}

func failedShrink(p Plane, err error) error {
	err = fmt.Errorf("shrink %s: %w", p.Name(), err)
	if m, says := p.(member); says && m.unawaited {
		return &Leftover{err, m.ending}
	}
	return err
}

// ErrUnconfirmed is returned by a Grow whose rows, or former ones, have not taken effect yet. In the latter case it may
// leave its own for a later call. Later steps wait until the plane says that it is over; nothing has failed.
var ErrUnconfirmed = errors.New("ovn-controller has not carried out the last change yet")

// ErrUnfinished is returned by a Shrink that has much to remove and lets others have their turn. Its work so far
// stands, and the next round, which need not wait, goes on.
var ErrUnfinished = errors.New("more is to be removed")

// Leftover is the error of a Shrink that nobody waits for. The round is repeated on account of it.
type Leftover struct {
	Err error
	// Connections: packets may go on by connections of former plans.
	Connections bool
}

func (l *Leftover) Error() string { return l.Err.Error() }

func (l *Leftover) Unwrap() error { return l.Err }

// LeavesConnections says whether err says so of any plane.
func LeavesConnections(err error) bool {
	if l, is := err.(*Leftover); is {
		return l.Connections
	}
	switch x := err.(type) {
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(x.Unwrap(), LeavesConnections)
	case interface{ Unwrap() error }:
		return LeavesConnections(x.Unwrap())
	}
	return false
}

// Refused is one row that a target would not take. Its owner is quarantined; nobody else is.
type Refused struct {
	Plane string
	Owner plan.Owner
	Row   string
	Err   error
}

func (r *Refused) Error() string {
	return fmt.Sprintf("%s refused %q of %s: %v", r.Plane, r.Row, r.Owner, r.Err)
}

func (r *Refused) Unwrap() error { return r.Err }

// Refusals are all Refused in err, joined ones too.
func Refusals(err error) []*Refused {
	if err == nil {
		return nil
	}
	if r, ok := err.(*Refused); ok {
		return []*Refused{r}
	}
	switch x := err.(type) {
	case interface{ Unwrap() []error }:
		var all []*Refused
		for _, e := range x.Unwrap() {
			all = append(all, Refusals(e)...)
		}
		return all
	case interface{ Unwrap() error }:
		return Refusals(x.Unwrap())
	}
	return nil
}

// OnlyRefusals says whether err is nil or made of nothing but Refused, Leftover and ErrUnfinished: the round went
// through but for them.
func OnlyRefusals(err error) bool { return madeOf(err, stopsNobody) }

// OnlyUnconfirmed says whether ErrUnconfirmed is all that keeps err from being OnlyRefusals.
func OnlyUnconfirmed(err error) bool {
	return errors.Is(err, ErrUnconfirmed) &&
		madeOf(err, func(e error) bool { return stopsNobody(e) || e == ErrUnconfirmed })
}

func stopsNobody(err error) bool {
	switch err.(type) {
	case *Refused, *Leftover:
		return true
	}
	return err == ErrUnfinished
}

// madeOf says whether all that is joined or wrapped in err, if anything, is such.
func madeOf(err error, such func(error) bool) bool {
	if err == nil || such(err) {
		return true
	}
	switch x := err.(type) {
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(x.Unwrap(), func(e error) bool { return !madeOf(e, such) })
	case interface{ Unwrap() error }:
		return x.Unwrap() != nil && madeOf(x.Unwrap(), such)
	}
	return false
}

// SignalOnce leaves one signal, however many there have been since the last was taken.
func SignalOnce(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
