package ovn

import (
	"errors"
	"fmt"
	"testing"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func fakeRig(f *Fake, a, b *plan.State, victim plan.RowID) *planetest.Rig {
	bad := plan.New()
	for id, r := range a.NB.Rows() {
		bad.NB.Put(planetest.Owner("zone/n1"), id, r)
	}
	for id, r := range a.SB.Rows() {
		bad.SB.Put(planetest.Owner("zone/n1"), id, r)
	}
	for e := range a.SetElems.Rows() {
		bad.SetElems.Put(planetest.Owner("eip/e"), e, plan.None{})
	}
	f.tableOf(bad).Put(planetest.Owner("eip/bad"),
		plan.RowID{Table: victim.Table, Name: "bad"}, plan.Row{Cols: plan.Cols{"name": "bad"}})
	f.Refuse = func(id plan.RowID, _ plan.Row) error {
		if id.Name == "bad" {
			return errors.New("bad")
		}
		return nil
	}
	return &planetest.Rig{
		New: func(*testing.T) plane.Plane { return f },
		A:   a, B: b,
		Dump:        func(*testing.T) string { return f.Held().Text() },
		Text:        (*plan.State).Text,
		PutForeign:  func(*testing.T) { f.Foreign()[plan.RowID{Table: victim.Table, Name: "theirs"}] = plan.Row{} },
		DumpForeign: func(*testing.T) string { return fmt.Sprint(f.Foreign()) },
		DeleteOurs:  func(*testing.T) { f.Delete(victim) },
		Monitored:   true,
		Writes:      f.Writes,
		FailOnce: func(*testing.T) {
			n := 0
			f.Fail = func() error {
				if n++; n == 2 || !f.Stepwise && n == 1 {
					f.Fail = nil
					return errors.New("injected")
				}
				return nil
			}
		},
		Bad: bad, BadOwner: planetest.Owner("eip/bad"),
	}
}

func TestFakeConformance(t *testing.T) {
	for _, stepwise := range []bool{false, true} {
		t.Run(fmt.Sprintf("NB/stepwise=%v", stepwise), func(t *testing.T) {
			planetest.Run(t, func(*testing.T) *planetest.Rig {
				f := NewFake()
				f.Stepwise = stepwise
				r := fakeRig(f, nbStateA(), nbStateB(), plan.RowID{Table: "Logical_Router_Policy", Name: "eip"})
				r.GivesWay = inOneTransaction
				return r
			})
		})
		t.Run(fmt.Sprintf("SB/stepwise=%v", stepwise), func(t *testing.T) {
			planetest.Run(t, func(*testing.T) *planetest.Rig {
				f, a, b := NewFakeSB(), plan.New(), plan.New()
				f.Stepwise = stepwise
				putChassis(a, "node/n2", "n2", "172.18.0.2")
				putChassis(b, "node/n2", "n2", "172.18.0.22")
				putChassis(b, "node/n3", "n3", "172.18.0.3")
				return fakeRig(f, a, b, plan.RowID{Table: "Chassis", Name: "n2"})
			})
		})
	}
}

// TestFakeSteps: stepwise, every row is seen on its way, parents before children and addresses before rules.
func TestFakeSteps(t *testing.T) {
	f := NewFake()
	f.Stepwise = true
	steps := 0
	f.OnStep = func(held *plan.State) {
		steps++
		for id, r := range held.NB.Rows() {
			if _, ok := held.NB[r.Parent]; !ok && r.Parent != (plan.RowID{}) {
				t.Errorf("step %d: %s is there before its parent %s", steps, id, r.Parent)
			}
			if id.Table == "Logical_Router_Policy" && len(held.SetElems) == 0 {
				t.Errorf("step %d: the rule is there before its set is full", steps)
			}
		}
	}
	a := nbStateA()
	if err := f.Grow(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if want := len(a.NB) + len(a.SetElems); steps != want {
		t.Errorf("saw %d steps, want %d", steps, want)
	}
}
