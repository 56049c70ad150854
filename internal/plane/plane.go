// Package plane is the only place that does I/O on what a node holds: one sub-package a kind of target, each with an
// exported fake that passes the same conformance suite (planetest).
//
// In: a plan.State, everything the node must hold. Out: the target holds it; or an error that names the owners whose
// rows the target refused, so that everybody else's rows are in place all the same.
package plane

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// Plane is one target that holds rows. Every call reads or already knows what the target holds, and applies the
// difference: calling it again is free, and a process that starts anew adopts what a former one left. Rows that do not
// carry our mark are never changed.
type Plane interface {
	Name() string
	// Grow adds and changes rows until the target holds all of want.
	Grow(ctx context.Context, want *plan.State) error
	// Shrink removes the rows of ours that want does not have.
	Shrink(ctx context.Context, want *plan.State) error
	// Forget makes the next call read the target anew.
	Forget()
}

// For is p, which holds those tables of a plan and nothing else.
func For(tables plan.Tables, p Plane) Plane { return holder{p, tables} }

type holder struct {
	Plane
	tables plan.Tables
}

// Concerned are the planes that hold one of the changed tables; those that do not say what they hold are always among them.
func Concerned(planes []Plane, changed plan.Tables) []Plane {
	var out []Plane
	for _, p := range planes {
		if h, says := p.(holder); !says || h.tables&changed != 0 {
			out = append(out, p)
		}
	}
	return out
}

// Apply makes before it breaks: Grow, then Shrink. A Grow that was stopped is not followed by a Shrink. Refused rows stop nothing; they
// are returned, joined.
func Apply(ctx context.Context, planes []Plane, want *plan.State) error {
	grown := Grow(ctx, planes, want)
	if !OnlyRefusals(grown) {
		return grown
	}
	return errors.Join(grown, Shrink(ctx, planes, want))
}

// Grow grows planes, which are in the order in which a packet meets them last to first, so that nothing is steered to a place that is
// not ready. A plane that fails to grow stops the way: what steers packets to it stays as it was.
func Grow(ctx context.Context, planes []Plane, want *plan.State) error {
	return inOrder(slices.Values(planes), "grow", func(p Plane) error { return p.Grow(ctx, want) })
}

// Shrink shrinks planes in the opposite order, so that nothing is left where nothing is any more. It follows a Grow that went through.
func Shrink(ctx context.Context, planes []Plane, want *plan.State) error {
	reversed := func(yield func(Plane) bool) {
		for _, p := range slices.Backward(planes) {
			if !yield(p) {
				return
			}
		}
	}
	return inOrder(reversed, "shrink", func(p Plane) error { return p.Shrink(ctx, want) })
}

func inOrder(planes iter.Seq[Plane], what string, do func(Plane) error) error {
	var refused []error
	for p := range planes {
		err := do(p)
		if !OnlyRefusals(err) {
			return errors.Join(append(refused, fmt.Errorf("%s %s: %w", what, p.Name(), err))...)
		}
		if err != nil {
			refused = append(refused, err)
		}
	}
	return errors.Join(refused...)
}

// ErrUnfinished is returned by a Shrink that has much to remove and lets others have their turn: what it did stands, and the next round, which
// need not wait, goes on.
var ErrUnfinished = errors.New("more is to be removed")

// Refused is one row that a target would not take. Its owner is quarantined; nobody else is.
type Refused struct {
	Plane, Owner, Row string
	Err               error
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

// OnlyRefusals says whether err is nil or made of nothing but Refused and ErrUnfinished: the round went through but for them.
func OnlyRefusals(err error) bool {
	if err == nil || err == ErrUnfinished {
		return true
	}
	if _, ok := err.(*Refused); ok {
		return true
	}
	switch x := err.(type) {
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(x.Unwrap(), func(e error) bool { return !OnlyRefusals(e) })
	case interface{ Unwrap() error }:
		return x.Unwrap() != nil && OnlyRefusals(x.Unwrap())
	}
	return false
}
