package ovn

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

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
	refs := w.listingRows()
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

// listingRows are those that list w in a column of theirs.
func (w *wanted) listingRows() []plan.RowID {
	if w.row.Parent == (plan.RowID{}) {
		return nil
	}
	return append([]plan.RowID{w.row.Parent}, w.row.Groups...)
}

func (w *wanted) keyOf(ref plan.RowID) plan.RowID {
	if k, ok := w.keys[ref]; ok {
		return k
	}
	return ref
}

// isSameRow says, without a look into the columns, that w is the row r: rows that change are replaced, never edited.
func (w *wanted) isSameRow(id plan.RowID, r plan.Row) bool {
	return w.id == id && w.keys == nil && w.row.Parent == r.Parent && slices.Equal(w.row.Groups, r.Groups) &&
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
	parents := w.listingRows()
	if len(parents) == 0 && !t.root {
		return fmt.Errorf("rows of %s need a parent", w.id.Table)
	}
	for _, p := range parents {
		if s.childColumn(p.Table, w.id.Table) == nil {
			return fmt.Errorf("table %s has no one column for rows of %s", p.Table, w.id.Table)
		}
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
// balancer or a switch port in the groups of ours that list it. Other references are columns in their own right
// (Logical_Switch.load_balancer).
func (e edge) isMembership(r *row) bool {
	switch t := e.from.table; {
	case t.children[r.table.name] != e.col:
		return false
	case t.name == tableGroup || t.name == tablePortGroup:
		return e.from.key != plan.RowID{}
	}
	return !r.table.root
}

// inPlace says whether r is in its parents' columns, and in no other.
func (m *mirror) inPlace(w *wanted, r *row) bool {
	missing := w.listingRows()
	for _, e := range m.edges[r.uuid] {
		of := slices.IndexFunc(missing, func(p plan.RowID) bool { return m.ours[w.keyOf(p)] == e.from })
		switch {
		case of >= 0 && e.from.table.children[r.table.name] == e.col:
			missing = slices.Delete(missing, of, of+1)
		case e.isMembership(r):
			return false
		}
	}
	return len(missing) == 0
}
