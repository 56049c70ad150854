package ovn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Fake is a database in memory, with its plane. Like the real one, the Northbound changes by one transaction in Grow,
// and the Southbound grows first and shrinks later. Set the fields before use.
type Fake struct {
	// Stepwise makes every row, and every address of a set, a step of its own, in the order in which the real plane
	// would cut a large transaction. Otherwise a step is a transaction.
	Stepwise bool
	// OnStep sees what the database holds after each step. It must neither keep nor change it.
	OnStep func(held *plan.State)
	// Fail is asked before each step; an error ends the call there.
	Fail func() error
	// Refuse says why the database does not take a row; nil takes every row whose parent and references are there.
	Refuse func(id plan.RowID, r plan.Row) error

	mu          sync.Mutex
	south       bool
	held        *plan.State
	foreign     map[plan.RowID]plan.Row
	writes      int
	unconfirmed bool
	changed     chan struct{}
	reached     chan struct{}
}

var _ plane.Plane = (*Fake)(nil)

// NewFake is an empty Northbound.
func NewFake() *Fake {
	return &Fake{held: plan.New(), foreign: map[plan.RowID]plan.Row{}, changed: make(chan struct{}, 1),
		reached: make(chan struct{}, 1)}
}

// NewFakeSB is an empty Southbound.
func NewFakeSB() *Fake {
	f := NewFake()
	f.south = true
	return f
}

// Name is as the real plane's.
func (f *Fake) Name() string {
	if f.south {
		return "sb"
	}
	return "nb"
}

// Held is what the database holds of ours. It is the fake's own: do not change it, and do not read it during a call.
func (f *Fake) Held() *plan.State { return f.held }

// Writes counts the steps so far.
func (f *Fake) Writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// Foreign are the rows of others, for tests to fill.
func (f *Fake) Foreign() map[plan.RowID]plan.Row { return f.foreign }

// Delete removes a row of ours behind the plane's back, and what is in it.
func (f *Fake) Delete(id plan.RowID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removeRow(id)
	plane.SignalOnce(f.changed)
}

// Forget does nothing: the fake always reads.
func (f *Fake) Forget() {}

// Changed, Confirmed and LateConfirm are as the real plane's.
func (f *Fake) Changed() <-chan struct{} { return f.changed }

// Confirmed is true unless SetConfirmed says otherwise.
func (f *Fake) Confirmed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.unconfirmed
}

// LateConfirm is signalled by SetConfirmed(true) after SetConfirmed(false).
func (f *Fake) LateConfirm() <-chan struct{} { return f.reached }

// SetConfirmed says whether the hypervisors are up to date from now on.
func (f *Fake) SetConfirmed(ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok && f.unconfirmed {
		plane.SignalOnce(f.reached)
	}
	f.unconfirmed = !ok
}

// Grow is as the real plane's; it leaves nothing for later.
func (f *Fake) Grow(_ context.Context, want *plan.State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	edits, refused := f.editsToPut(want)
	if !f.south {
		elems, bad := f.elemEdits(want)
		edits, refused = append(edits, elems...), append(refused, bad...)
		edits = append(edits, f.editsToDelete(want)...)
	}
	if err := f.runEdits(edits); err != nil {
		return err
	}
	if f.unconfirmed {
		refused = append(refused, plane.ErrUnconfirmed)
	}
	return errors.Join(refused...)
}

// Shrink is as the real plane's.
func (f *Fake) Shrink(_ context.Context, want *plan.State) error {
	if !f.south {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runEdits(f.editsToDelete(want))
}

// fakeEdit is one step to come. rank orders: see table.rank.
type fakeEdit struct {
	rank int
	text string
	do   func()
}

func (f *Fake) tableOf(s *plan.State) plan.Table[plan.RowID, plan.Row] {
	if f.south {
		return s.SB
	}
	return s.NB
}

func (f *Fake) editsToPut(want *plan.State) (edits []fakeEdit, refused []error) {
	rows, have := f.tableOf(want), f.tableOf(f.held)
	bad := map[plan.RowID]bool{}
	for again := true; again; {
		again = false
		for id, r := range rows.Rows() {
			if err := f.refuseRow(rows, bad, id, r); err != nil && !bad[id] {
				bad[id], again = true, true
				refused = append(refused, &plane.Refused{Plane: f.Name(), Owner: rows.Owner(id), Row: id.String(),
					Err: err})
			}
		}
	}
	for id, r := range rows.Rows() {
		old, ok := have.Get(id)
		if bad[id] || ok && old.Equal(r) {
			continue
		}
		edits = append(edits, fakeEdit{tableRank(id.Table, r.Parent == plan.RowID{}), id.String(),
			func() { have.Put(plan.Owner{}, id, r) }})
	}
	return edits, refused
}

func (f *Fake) refuseRow(rows plan.Table[plan.RowID, plan.Row], bad map[plan.RowID]bool, id plan.RowID,
	r plan.Row) error {
	if f.Refuse != nil {
		if err := f.Refuse(id, r); err != nil {
			return err
		}
	}
	if err := checkTexts(id, r); err != nil {
		return err
	}
	for _, ref := range (&wanted{row: r}).referredRows() {
		if _, ok := rows[ref]; !ok || bad[ref] {
			return fmt.Errorf("there is no row %s", ref)
		}
	}
	return nil
}

func (f *Fake) elemEdits(want *plan.State) (edits []fakeEdit, refused []error) {
	d := plan.Diff(heldRows(f.held.SetElems), want.SetElems, plan.Same)
	for e := range d.Put {
		if err := checkElem(e); err != nil {
			c := change{elem: e}
			refused = append(refused, &plane.Refused{Plane: f.Name(), Owner: want.SetElems.Owner(e), Row: c.String(),
				Err: err})
			continue
		}
		put := func() { f.held.SetElems.Put(plan.Owner{}, e, plan.None{}) }
		edits = append(edits, fakeEdit{1, e.Set + " " + e.Addr, put})
	}
	for e := range d.Del {
		drop := func() { f.held.SetElems.Drop(plan.Owner{}, e) }
		edits = append(edits, fakeEdit{removalRank(tableAddressSet), e.Set + " " + e.Addr, drop})
	}
	return edits, refused
}

func (f *Fake) editsToDelete(want *plan.State) []fakeEdit {
	rows := f.tableOf(want)
	var edits []fakeEdit
	for id := range f.tableOf(f.held).Rows() {
		if _, ok := rows[id]; !ok {
			edits = append(edits, fakeEdit{removalRank(id.Table), id.String(), func() { f.removeRow(id) }})
		}
	}
	return edits
}

// removeRow takes out a row with its children.
func (f *Fake) removeRow(id plan.RowID) {
	have := f.tableOf(f.held)
	have.Drop(plan.Owner{}, id)
	for child, r := range heldRows(have) {
		if r.Parent == id {
			f.removeRow(child)
		}
	}
}

func heldRows[K comparable, V any](t plan.Table[K, V]) map[K]V {
	m := make(map[K]V, len(t))
	for k, v := range t.Rows() {
		m[k] = v
	}
	return m
}

func (f *Fake) runEdits(edits []fakeEdit) error {
	slices.SortFunc(edits, func(a, b fakeEdit) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.text, b.text))
	})
	step := max(len(edits), 1)
	if f.Stepwise {
		step = 1
	}
	for part := range slices.Chunk(edits, step) {
		if f.Fail != nil {
			if err := f.Fail(); err != nil {
				return err
			}
		}
		for _, e := range part {
			e.do()
		}
		f.writes++
		if f.OnStep != nil {
			f.OnStep(f.held)
		}
	}
	return nil
}
