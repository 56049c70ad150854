package ovn

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/egret-net/egret/internal/plan"
)

// wanted is one row of a plan with its key in the database.
type wanted struct {
	id, key plan.RowID
	row     plan.Row
	// keys are the database's keys of those rows that row refers to and that have another key than their RowID.
	keys map[plan.RowID]plan.RowID
}

func newWanted(s schema, rows plan.Table[plan.RowID, plan.Row], id plan.RowID, r plan.Row) *wanted {
	w := &wanted{id: id, key: s.rowKey(id, r), row: r}
	for _, ref := range w.referredRows() {
		target, ok := rows.Get(ref)
		if k := s.rowKey(ref, target); ok && k != ref {
			if w.keys == nil {
				w.keys = map[plan.RowID]plan.RowID{}
			}
			w.keys[ref] = k
		}
	}
	return w
}

func (w *wanted) referredRows() []plan.RowID {
	var refs []plan.RowID
	if w.row.Parent != (plan.RowID{}) {
		refs = append(refs, w.row.Parent)
	}
	for _, v := range w.row.Cols {
		switch x := v.(type) {
		case plan.RowID:
			refs = append(refs, x)
		case []plan.RowID:
			refs = append(refs, x...)
		}
	}
	return refs
}

func (w *wanted) keyOf(ref plan.RowID) plan.RowID {
	if k, ok := w.keys[ref]; ok {
		return k
	}
	return ref
}

// isSameRow says, without a look into the columns, that w is the row r: rows that change are replaced, never edited.
func (w *wanted) isSameRow(id plan.RowID, r plan.Row) bool {
	return w.id == id && w.keys == nil && w.row.Parent == r.Parent &&
		reflect.ValueOf(w.row.Cols).Pointer() == reflect.ValueOf(r.Cols).Pointer()
}

// checkAgainst says why no database would take the row.
func (w *wanted) checkAgainst(s schema) error {
	t := s[w.id.Table]
	if t == nil {
		return fmt.Errorf("the database has no table %s", w.id.Table)
	}
	if w.id.Table == tableAddressSet && w.row.Cols[colAddresses] != nil {
		return errors.New("put addresses of an Address_Set into SetElems")
	}
	if err := checkTexts(w.id, w.row); err != nil {
		return err
	}
	if p := w.row.Parent; p == (plan.RowID{}) {
		if !t.root {
			return fmt.Errorf("rows of %s need a parent", w.id.Table)
		}
	} else if s.childColumn(p.Table, w.id.Table) == nil {
		return fmt.Errorf("table %s has no one column for rows of %s", p.Table, w.id.Table)
	}
	return nil
}

// columnValues are the columns that w wants, in the database's form.
func (w *wanted) columnValues(t *table, resolve func(plan.RowID) (string, error)) (map[string]value, error) {
	vals := make(map[string]value, len(w.row.Cols)+2)
	for name, v := range w.row.Cols {
		c := t.cols[name]
		if c == nil {
			return nil, fmt.Errorf("table %s has no column %s", t.name, name)
		}
		x, err := c.fromPlan(v, func(ref plan.RowID) (string, error) { return resolve(w.keyOf(ref)) })
		if err != nil {
			return nil, err
		}
		vals[name] = x
	}
	w.addIdentity(t, vals)
	return vals, nil
}

// addIdentity adds what makes the row ours.
func (w *wanted) addIdentity(t *table, vals map[string]value) {
	if t.name == tableGlobal {
		return
	}
	if c := t.cols["name"]; c != nil && c.min == 1 {
		if _, ok := vals["name"]; !ok {
			vals["name"] = value{set: []string{w.id.Name}}
		}
	}
	if t.name == tableGroup {
		vals["name"] = value{set: []string{w.key.Name}}
	}
	if t.index == nil {
		ids := map[string]string{}
		maps.Copy(ids, vals["external_ids"].kv)
		ids[keyID], ids[keyOwner] = w.id.Name, owner
		vals["external_ids"] = value{kv: ids}
	}
}

// missingColumns are the columns in which r differs from vals.
func missingColumns(r *row, vals map[string]value) map[string]value {
	var m map[string]value
	for name, v := range vals {
		have := r.valueOf(name)
		if have.equalValue(v) || r.table.name == tableGlobal && v.kv != nil && includesPairs(have.kv, v.kv) {
			continue
		}
		if m == nil {
			m = map[string]value{}
		}
		m[name] = v
	}
	return m
}

func includesPairs(have, want map[string]string) bool {
	for k, v := range want {
		if h, ok := have[k]; !ok || h != v {
			return false
		}
	}
	return true
}

// uuidOf is the resolver of rows that are there.
func (m *mirror) uuidOf(key plan.RowID) (string, error) {
	if r := m.ours[key]; r != nil {
		return r.uuid, nil
	}
	return "", fmt.Errorf("there is no row %s", key)
}

// holdsRow says whether the database has w just so.
func (m *mirror) holdsRow(w *wanted) (bool, error) {
	r := m.ours[w.key]
	if r == nil {
		return false, nil
	}
	vals, err := w.columnValues(r.table, func(key plan.RowID) (string, error) {
		u, err := m.uuidOf(key)
		if err != nil {
			return "?", nil // to come: differs from whatever is there
		}
		return u, nil
	})
	if err != nil {
		return false, err
	}
	return missingColumns(r, vals) == nil && m.inPlace(w, r), nil
}

// isMembership says whether e puts r into a parent: a row that is not root is where it is referred to, and a load
// balancer in the group of ours that lists it. Other references are columns in their own right
// (Logical_Switch.load_balancer).
func (e edge) isMembership(r *row) bool {
	if e.from.table.children[r.table.name] != e.col {
		return false
	}
	return !r.table.root || e.from.table.name == tableGroup && e.from.key != plan.RowID{}
}

// inPlace says whether r is in its parent's column, and in no other.
func (m *mirror) inPlace(w *wanted, r *row) bool {
	var parent *row
	if w.row.Parent != (plan.RowID{}) {
		if parent = m.ours[w.keyOf(w.row.Parent)]; parent == nil {
			return false
		}
	}
	found := parent == nil
	for _, e := range m.edges[r.uuid] {
		switch {
		case e.from == parent && e.from.table.children[r.table.name] == e.col:
			found = true
		case e.isMembership(r):
			return false
		}
	}
	return found
}
