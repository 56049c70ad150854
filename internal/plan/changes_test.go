package plan_test

import (
	"fmt"
	"maps"
	"math/bits"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/egret-net/egret/internal/plan"
)

// TestDeltasEqualWhole: who applies what changed holds the same as who compares everything, whatever owners claim and
// give up, however applies fail half way, whoever changes the target meanwhile, and when another plan is begun.
func TestDeltasEqualWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &deltas{
			state: plan.New(), rows: map[string]*plan.Rows{},
			follow: plan.Follow[plan.Flow](plan.InFlows), held: map[plan.Flow]string{},
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2, 3, 4:
				h.change(t)
			case 5, 6, 7:
				h.apply(t, rapid.IntRange(0, 3).Draw(t, "fails") > 0)
			case 8:
				delete(h.held, flowKey(t))
				h.follow.Forget()
			case 9:
				h.state, h.rows = plan.New(), map[string]*plan.Rows{}
			}
		}
		h.apply(t, true)
	})
}

type deltas struct {
	state  *plan.State
	rows   map[string]*plan.Rows
	follow plan.Follower[plan.Flow]
	held   map[plan.Flow]string
}

func flowKey(t *rapid.T) plan.Flow {
	return plan.Flow{Match: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "key"))}
}

func (h *deltas) change(t *rapid.T) {
	owner := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner")
	old, now := h.rows[owner], &plan.Rows{}
	if old == nil {
		old = &plan.Rows{}
	}
	for range rapid.IntRange(0, 5).Draw(t, "rows") {
		at := now
		if rapid.Bool().Draw(t, "on behalf") {
			at = now.For(plan.Owner{Feature: "other"})
		}
		plan.Add(&at.Flows, flowKey(t), fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "actions")))
	}
	h.state.Replace(plan.Owner{Feature: owner}, old, now)
	h.rows[owner] = now
}

// apply carries out what changed, or a part of it.
func (h *deltas) apply(t *rapid.T, goesWell bool) {
	d := plan.DiffOf(h.follow.Take(h.state), h.held, h.state.Flows, plan.Same)
	does := func() bool { return goesWell || rapid.Bool().Draw(t, "done") }
	for k, v := range d.Put {
		if does() {
			h.held[k] = v
		}
	}
	for k := range d.Del {
		if does() {
			delete(h.held, k)
		}
	}
	if !goesWell {
		delete(h.held, flowKey(t)) // nobody knows what a target is like that failed
		return
	}
	h.follow.Done(h.state)
	if want := maps.Collect(h.state.Flows.Rows()); !maps.Equal(h.held, want) {
		t.Fatalf("by what changed it holds %v, want %v", h.held, want)
	}
}

// TestJournalIsBounded: of what is too long ago anything may have changed, and of the rest it is known what.
func TestJournalIsBounded(t *testing.T) {
	s, follow, old := plan.New(), plan.Follow[plan.SetElem](plan.InSetElems), &plan.Rows{}
	follow.Take(s)
	follow.Done(s)
	for i := range 30000 {
		now := &plan.Rows{}
		now.AddElem("set", fmt.Sprint(i))
		s.Replace(plan.Owner{Feature: "o"}, old, now)
		if old = now; i > 20000 {
			c := follow.Take(s)
			if follow.Done(s); i == 20001 && c.Known || i > 20001 && (!c.Known || len(c.Keys) != 2) {
				t.Fatalf("after change %d: %d changes, known: %v", i, len(c.Keys), c.Known)
			}
		}
	}
}

// TestEveryTableIsMergedAndFollowed: each of Rows' tables is one of State's, and has a bit of its own.
func TestEveryTableIsMergedAndFollowed(t *testing.T) {
	seen := map[plan.Tables]string{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[plan.Rows]()) {
		if field.Type.Kind() != reflect.Map {
			continue
		}
		s, none, rows := plan.New(), plan.Rows{}, plan.Rows{}
		m := reflect.MakeMap(field.Type)
		m.SetMapIndex(reflect.Zero(field.Type.Key()), reflect.Zero(field.Type.Elem()))
		reflect.ValueOf(&rows).Elem().FieldByIndex(field.Index).Set(m)
		before := s.Now()
		s.Replace(plan.Owner{Feature: "o"}, &none, &rows)
		changed := s.ChangedSince(before)
		if bits.OnesCount32(uint32(changed)) != 1 || seen[changed] != "" {
			t.Errorf("%s: changed tables %b, which are those of %q", field.Name, changed, seen[changed])
		}
		seen[changed] = field.Name
		if n := reflect.ValueOf(s).Elem().FieldByName(field.Name).Len(); n != 1 {
			t.Errorf("%s: State has %d rows, want 1", field.Name, n)
		}
		between := s.Now()
		if s.Replace(plan.Owner{Feature: "o"}, &rows, &rows); s.ChangedSince(between) != 0 {
			t.Errorf("%s: what stays as it is has changed", field.Name)
		}
	}
}
