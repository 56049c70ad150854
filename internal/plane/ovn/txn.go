package ovn

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/egret-net/egret/internal/plan"
)

// txn is one transaction in the making.
type txn struct {
	m      *mirror
	ops    []ovsdb.Operation
	by     []int // the change that each operation is of; -1 if of several
	names  map[plan.RowID]string
	insert map[plan.RowID]int // operation that inserts a row, by key
	edits  map[cell]*edit
	order  []cell // of edits, so that a transaction is the same each time
}

// cell is one set column of one row that is there.
type cell struct{ table, uuid, column string }

// edit is what goes into and out of a cell.
type edit struct {
	col      *column
	add, del []string
}

// buildTransaction makes one transaction of cs. Changes that cannot be expressed, since what they refer to is not
// there, are refused beforehand, and with them whatever refers to those.
func buildTransaction(m *mirror, cs []change) (*txn, []refusal) {
	t := &txn{m: m, names: map[plan.RowID]string{}, insert: map[plan.RowID]int{}, edits: map[cell]*edit{}}
	vals, bad := t.resolveAll(cs)
	for i := range cs {
		switch c := &cs[i]; {
		case c.w != nil && vals[i] != nil && c.row == nil:
			t.insertRow(i, c, vals[i])
		case c.w != nil && vals[i] != nil:
			t.updateRow(i, c, vals[i])
		}
	}
	gone := map[*row]bool{}
	for i := range cs {
		if c := &cs[i]; c.del && c.row != nil && c.row.table.root {
			gone[c.row] = true
			t.addOp(i, ovsdb.Operation{Op: ovsdb.OperationDelete, Table: c.row.table.name,
				Where: whereUUID(c.row.uuid)})
		}
	}
	for i := range cs {
		switch c := &cs[i]; {
		case c.w != nil && vals[i] != nil:
			t.placeInParents(c, gone)
		case c.w == nil && c.row != nil && !c.row.table.root:
			t.detachFromParents(c.row, gone)
		case c.w == nil && c.row == nil:
			if err := t.addElementOp(c); err != nil {
				bad = append(bad, refusal{*c, err})
			}
		}
	}
	t.flushEdits()
	return t, bad
}

// resolveAll reads every row's columns, and leaves nil where that is not possible.
func (t *txn) resolveAll(cs []change) ([]map[string]value, []refusal) {
	for i := range cs {
		if c := &cs[i]; c.w != nil && c.row == nil {
			t.names[c.w.key] = "r" + strconv.Itoa(i)
		}
	}
	vals := make([]map[string]value, len(cs))
	failed := map[int]error{}
	for again := true; again; {
		again = false
		for i := range cs {
			c := &cs[i]
			if c.w == nil || failed[i] != nil {
				continue
			}
			var err error
			if vals[i], err = t.resolveRow(c); err != nil {
				failed[i], again = err, true
				vals[i] = nil
				delete(t.names, c.w.key)
			}
		}
	}
	var bad []refusal
	for i := range cs {
		if failed[i] != nil {
			bad = append(bad, refusal{cs[i], failed[i]})
		}
	}
	return vals, bad
}

func (t *txn) resolveRow(c *change) (map[string]value, error) {
	for _, p := range c.w.listingRows() {
		if _, err := t.resolveKey(c.w.keyOf(p)); err != nil {
			return nil, fmt.Errorf("parent: %w", err)
		}
	}
	return c.w.columnValues(t.m.schema[c.w.id.Table], t.resolveKey)
}

func (t *txn) resolveKey(key plan.RowID) (string, error) {
	if n, ok := t.names[key]; ok {
		return n, nil
	}
	return t.m.uuidOf(key)
}

func (t *txn) addOp(by int, op ovsdb.Operation) {
	t.ops, t.by = append(t.ops, op), append(t.by, by)
}

func (t *txn) insertRow(i int, c *change, vals map[string]value) {
	tab := t.m.schema[c.w.id.Table]
	t.insert[c.w.key] = len(t.ops)
	t.addOp(i, ovsdb.Operation{Op: ovsdb.OperationInsert, Table: tab.name, Row: wireRow(tab, vals),
		UUIDName: t.names[c.w.key]})
}

func (t *txn) updateRow(i int, c *change, vals map[string]value) {
	diff := missingColumns(c.row, vals)
	tab := c.row.table
	if tab.name == tableGlobal {
		diff = t.mergeMaps(i, c.row, diff)
	}
	if len(diff) > 0 {
		t.addOp(i, ovsdb.Operation{Op: ovsdb.OperationUpdate, Table: tab.name, Row: wireRow(tab, diff),
			Where: whereUUID(c.row.uuid)})
	}
}

// mergeMaps writes the maps of diff key by key, for others write to the same map, and returns the rest.
func (t *txn) mergeMaps(i int, r *row, diff map[string]value) map[string]value {
	rest := map[string]value{}
	for name, v := range diff {
		c := r.table.cols[name]
		if !c.isMap() {
			rest[name] = v
			continue
		}
		// "insert" leaves a key alone that is there (RFC 7047 5.1): take it out first.
		keys := ovsdb.OvsSet{}
		for k := range v.kv {
			keys.GoSet = append(keys.GoSet, atomToWire(c.key, k))
		}
		t.addOp(i, ovsdb.Operation{Op: ovsdb.OperationMutate, Table: r.table.name, Where: whereUUID(r.uuid),
			Mutations: []ovsdb.Mutation{
				{Column: name, Mutator: ovsdb.MutateOperationDelete, Value: keys},
				{Column: name, Mutator: ovsdb.MutateOperationInsert, Value: c.toWire(v)},
			}})
	}
	return rest
}

// placeInParents puts a row into its parents' columns, and takes it out of former parents'.
func (t *txn) placeInParents(c *change, gone map[*row]bool) {
	child := t.names[c.w.key]
	if c.row != nil {
		if t.m.inPlace(c.w, c.row) {
			return
		}
		child = c.row.uuid
		t.detachFromParents(c.row, gone)
	}
	for _, p := range c.w.listingRows() {
		t.placeInParent(c, c.w.keyOf(p), child)
	}
}

func (t *txn) placeInParent(c *change, parentKey plan.RowID, child string) {
	col := t.m.schema.childColumn(parentKey.Table, c.w.id.Table)
	if i, ok := t.insert[parentKey]; ok {
		// In the insert itself: an Encap must be there when its Chassis comes to be.
		addToSet(t.ops[i].Row, col, child)
		return
	}
	e := t.editOf(cell{parentKey.Table, t.m.ours[parentKey].uuid, col.name}, col)
	e.add = append(e.add, child)
	e.del = slices.DeleteFunc(e.del, func(u string) bool { return u == child })
}

// detachFromParents takes r out of every parent, but for parents that go anyway. The server removes a row that is not
// root when nobody refers to it any more.
func (t *txn) detachFromParents(r *row, gone map[*row]bool) {
	for _, e := range t.m.edges[r.uuid] {
		if gone[e.from] || !e.isMembership(r) {
			continue
		}
		x := t.editOf(cell{e.from.table.name, e.from.uuid, e.col.name}, e.col)
		x.del = append(x.del, r.uuid)
	}
}

func (t *txn) addElementOp(c *change) error {
	key := plan.RowID{Table: tableAddressSet, Name: c.elem.Set}
	col := t.m.schema[tableAddressSet].cols[colAddresses]
	if i, ok := t.insert[key]; ok {
		addToSet(t.ops[i].Row, col, c.elem.Addr)
		return nil
	}
	uuid, err := t.m.uuidOf(key)
	if err != nil {
		return err
	}
	e := t.editOf(cell{tableAddressSet, uuid, colAddresses}, col)
	if c.del {
		e.del = append(e.del, c.elem.Addr)
	} else {
		e.add = append(e.add, c.elem.Addr)
	}
	return nil
}

func (t *txn) editOf(at cell, col *column) *edit {
	e := t.edits[at]
	if e == nil {
		e = &edit{col: col}
		t.edits[at] = e
		t.order = append(t.order, at)
	}
	return e
}

func (t *txn) flushEdits() {
	for _, at := range t.order {
		e := t.edits[at]
		var ms []ovsdb.Mutation
		if len(e.del) > 0 {
			ms = append(ms, ovsdb.Mutation{Column: at.column, Mutator: ovsdb.MutateOperationDelete,
				Value: e.col.setToWire(e.del)})
		}
		if len(e.add) > 0 {
			ms = append(ms, ovsdb.Mutation{Column: at.column, Mutator: ovsdb.MutateOperationInsert,
				Value: e.col.setToWire(e.add)})
		}
		if ms != nil {
			t.addOp(-1, ovsdb.Operation{Op: ovsdb.OperationMutate, Table: at.table, Where: whereUUID(at.uuid),
				Mutations: ms})
		}
	}
}

// countUp adds to nb_cfg in the same transaction, and reads what it then is: hv_cfg reaches that number when every
// hypervisor of the zone has carried out the transaction (ovn-nb(5)). Its error is that somebody has removed the row.
func (t *txn) countUp() error {
	global := t.m.ours[plan.RowID{Table: tableGlobal}]
	if global == nil {
		return errors.New("the Northbound has no row NB_Global any more; it will be made anew")
	}
	where := whereUUID(global.uuid)
	t.addOp(-1, ovsdb.Operation{Op: ovsdb.OperationMutate, Table: tableGlobal, Where: where,
		Mutations: []ovsdb.Mutation{{Column: "nb_cfg", Mutator: ovsdb.MutateOperationAdd, Value: 1}}})
	t.addOp(-1, ovsdb.Operation{Op: ovsdb.OperationSelect, Table: tableGlobal, Where: where,
		Columns: []string{"nb_cfg"}})
	return nil
}

func addToSet(r ovsdb.Row, col *column, atom string) {
	s, _ := r[col.name].(ovsdb.OvsSet)
	s.GoSet = append(s.GoSet, atomToWire(col.key, atom))
	r[col.name] = s
}

func wireRow(t *table, vals map[string]value) ovsdb.Row {
	r := ovsdb.Row{}
	for name, v := range vals {
		r[name] = t.cols[name].toWire(v)
	}
	return r
}

func whereUUID(uuid string) []ovsdb.Condition {
	return []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: uuid})}
}
