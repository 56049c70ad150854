// Package planetest is the one conformance suite that every plane and its fake pass.
//
// In: a Rig, which is a target with a way to look at it, to meddle with it, and to start a plane on it. Out: test
// failures where the plane breaks the contract of plane.Plane.
package planetest

import (
	"testing"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Owner is one of a name, for rows of which it matters only whose they are.
func Owner(name string) plan.Owner { return plan.Owner{Feature: name} }

// Rig is one fresh target and the hands that a test has on it. Functions that may be nil say so; the tests that need
// them are then left out.
type Rig struct {
	// New starts a plane on the target. A second call is a new process: it shares nothing with the first but the
	// target.
	New func(t *testing.T) plane.Plane
	// A and B are two states that the target takes. B must add a row to A, drop one and change one, if the target has
	// rows that can change.
	A, B *plan.State
	// Dump is the target's rows of ours as text, and Text is what Dump must say when the target holds exactly s.
	Dump func(t *testing.T) string
	Text func(s *plan.State) string
	// PutForeign makes rows that are not ours, as near to ours as can be; DumpForeign prints them.
	PutForeign  func(t *testing.T)
	DumpForeign func(t *testing.T) string
	// DeleteOurs removes one row of A behind the plane's back.
	DeleteOurs func(t *testing.T)
	// Monitored planes notice DeleteOurs by themselves, after a moment; the others after Forget.
	Monitored bool
	// GivesWay says which of A's rows, as lines of Text, may go when B grows, for the target could not take B beside
	// them. All others go when B shrinks, and not before. nil: there is no such row.
	GivesWay func(line string) bool
	// Writes counts the writes that the target has seen so far. May be nil.
	Writes func() int
	// FailOnce makes the next Grow that has something to write fail, half way if the target can. May be nil.
	FailOnce func(t *testing.T)
	// Bad is A and one row more, of owner BadOwner, which the target refuses. May be nil.
	Bad      *plan.State
	BadOwner plan.Owner
	// Hostile are rows, one each, with texts that would be something else to the target than they are in a plan. The
	// target must never see them. May be nil.
	Hostile []plan.Rows
}

const timeout = 20 * time.Second

// Run runs the suite. newRig makes a fresh target each time it is called.
func Run(t *testing.T, newRig func(t *testing.T) *Rig) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *Rig)
	}{
		{"Applies", checkApplies},
		{"Idempotent", checkIdempotent},
		{"Changes", checkChanges},
		{"GrowsBeforeItShrinks", growsBeforeItShrinks},
		{"ShrinkRemovesOnlyOurs", shrinkRemovesOnlyOurs},
		{"AdoptsRowsOfAFormerProcess", checkAdopts},
		{"NewProcessOnAnotherState", onAnotherState},
		{"LeavesForeignRowsAlone", foreignAlone},
		{"HealsForeignDeletion", checkHeals},
		{"ConvergesAfterFailureHalfWay", failsHalfWay},
		{"RefusedRowNamesItsOwner", checkRefuses},
		{"RefusesHostileTextAlone", refusesHostile},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newRig(t)) })
	}
}

func checkApplies(t *testing.T, r *Rig) {
	mustApply(t, r.New(t), r.A)
	wantDump(t, r, r.A)
}

func checkIdempotent(t *testing.T, r *Rig) {
	p := r.New(t)
	mustApply(t, p, r.A)
	before := r.countWrites()
	mustApply(t, p, r.A)
	wantDump(t, r, r.A)
	if n := r.countWrites() - before; n != 0 {
		t.Errorf("applying the same state again made %d writes, want none", n)
	}
}

func checkChanges(t *testing.T, r *Rig) {
	p := r.New(t)
	for _, s := range []*plan.State{r.A, r.B, r.A, plan.New(), r.B} {
		mustApply(t, p, s)
		wantDump(t, r, s)
	}
}

// growsBeforeItShrinks: Grow alone must already make every row of B; Shrink alone must not make any.
func growsBeforeItShrinks(t *testing.T, r *Rig) {
	p := r.New(t)
	if err := p.Shrink(testContext(t), r.A); err != nil {
		t.Fatalf("shrink of an empty target: %v", err)
	}
	wantDump(t, r, plan.New())
	mustApply(t, p, r.A)
	if err := p.Grow(testContext(t), r.B); err != nil {
		t.Fatalf("grow: %v", err)
	}
	wantLines(t, r, r.B, nil)
}

func shrinkRemovesOnlyOurs(t *testing.T, r *Rig) {
	r.PutForeign(t)
	foreign := r.DumpForeign(t)
	p := r.New(t)
	mustApply(t, p, r.A)
	mustApply(t, p, plan.New())
	wantDump(t, r, plan.New())
	wantForeign(t, r, foreign)
}

func checkAdopts(t *testing.T, r *Rig) {
	mustApply(t, r.New(t), r.A)
	before := r.countWrites()
	p := r.New(t)
	mustApply(t, p, r.A)
	wantDump(t, r, r.A)
	if n := r.countWrites() - before; n != 0 {
		t.Errorf("a new process with the same state made %d writes, want none", n)
	}
	mustApply(t, r.New(t), r.B)
	wantDump(t, r, r.B)
}

// onAnotherState: a new process that finds the rows of A makes every row of B when it grows, and removes no other row
// before it shrinks: packets may still be led there.
func onAnotherState(t *testing.T, r *Rig) {
	mustApply(t, r.New(t), r.A)
	p := r.New(t)
	if err := p.Grow(testContext(t), r.B); err != nil {
		t.Fatalf("grow: %v", err)
	}
	wantLines(t, r, r.B, nil)
	wantLines(t, r, rowsWithout(r.A, r.B), r.GivesWay)
	if err := p.Shrink(testContext(t), r.B); err != nil {
		t.Fatalf("shrink: %v", err)
	}
	wantDump(t, r, r.B)
}

func foreignAlone(t *testing.T, r *Rig) {
	p := r.New(t)
	mustApply(t, p, r.A)
	r.PutForeign(t)
	foreign := r.DumpForeign(t)
	for _, s := range []*plan.State{r.A, r.B, r.A} {
		p.Forget()
		mustApply(t, p, s)
		wantForeign(t, r, foreign)
	}
	mustApply(t, r.New(t), r.B)
	wantForeign(t, r, foreign)
	wantDump(t, r, r.B)
}

func checkHeals(t *testing.T, r *Rig) {
	p := r.New(t)
	mustApply(t, p, r.A)
	r.DeleteOurs(t)
	if r.Dump(t) == r.Text(r.A) {
		t.Fatal("the rig deleted nothing")
	}
	if !r.Monitored {
		p.Forget()
	}
	for deadline := time.Now().Add(timeout / 2); ; time.Sleep(10 * time.Millisecond) {
		mustApply(t, p, r.A)
		if r.Dump(t) == r.Text(r.A) || time.Now().After(deadline) {
			break
		}
	}
	wantDump(t, r, r.A)
}

func failsHalfWay(t *testing.T, r *Rig) {
	if r.FailOnce == nil {
		return
	}
	p := r.New(t)
	mustApply(t, p, r.A)
	r.FailOnce(t)
	if err := plane.Apply(testContext(t), []plane.Plane{p}, r.B); err == nil {
		t.Fatal("the failure went unnoticed")
	} else if len(plane.Refusals(err)) > 0 {
		t.Fatalf("a failure of the target is nobody's fault, but: %v", err)
	}
	applyUntilDone(t, p, r.B)
	wantDump(t, r, r.B)
}

func checkRefuses(t *testing.T, r *Rig) {
	if r.Bad == nil {
		return
	}
	p := r.New(t)
	for range 2 {
		err := plane.Apply(testContext(t), []plane.Plane{p}, r.Bad)
		refusals := plane.Refusals(err)
		if len(refusals) != 1 || refusals[0].Owner != r.BadOwner || refusals[0].Plane != p.Name() {
			t.Fatalf("got error %v, want one refusal by %s, of owner %s", err, p.Name(), r.BadOwner)
		}
		wantDump(t, r, r.A)
	}
	mustApply(t, p, r.B)
	wantDump(t, r, r.B)
}

func refusesHostile(t *testing.T, r *Rig) {
	p := r.New(t)
	owner := Owner("hostile")
	for i := range r.Hostile {
		r.A.Replace(owner, &plan.Rows{}, &r.Hostile[i])
		err := plane.Apply(testContext(t), []plane.Plane{p}, r.A)
		r.A.Replace(owner, &r.Hostile[i], &plan.Rows{})
		if refusals := plane.Refusals(err); len(refusals) != 1 || refusals[0].Owner != owner ||
			!plane.OnlyRefusals(err) {
			t.Errorf("row %d, %+v: got error %v, want one refusal, of owner %s", i, r.Hostile[i], err, owner)
		}
		wantDump(t, r, r.A)
	}
}
