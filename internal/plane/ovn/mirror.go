package ovn

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/plan"
)

// row is one row of the database, ours or not.
type row struct {
	uuid  string
	table *table
	cols  map[string]value
	key   plan.RowID // zero when the row is not ours
}

func (r *row) valueOf(name string) value {
	if v, ok := r.cols[name]; ok {
		return v
	}
	if c := r.table.cols[name]; c != nil {
		return c.zeroValue()
	}
	return value{}
}

// edge is one reference to a row: the row that refers, and its column.
type edge struct {
	from *row
	col  *column
}

// mirror is the local copy of the database, kept by the monitor.
//
// Invariants: ours has the one row of each key, extra the marked rows whose key another one has (a copied row); elems
// are the addresses of the Address_Sets in ours; edges are the references between mirrored rows, by the uuid referred
// to.
type mirror struct {
	schema schema
	rows   map[string]*row
	ours   map[plan.RowID]*row
	extra  map[string]*row
	elems  map[plan.SetElem]plan.None
	edges  map[string][]edge
	// undecided are the rows to decide on again when a notification is complete, by uuid: those without external_ids
	// are ours through another row.
	undecided map[string]plan.None
	// routerPorts are Logical_Router_Ports by their name, and bindings Static_MAC_Bindings by that of their port.
	routerPorts, bindings byName
	// touched collects what changed since it was last emptied: rows of ours by key, and elements.
	touched      map[plan.RowID]plan.None
	touchedElems map[plan.SetElem]plan.None
}

// byName are uuids of rows, by the value of one of their columns.
type byName map[string]map[string]plan.None

func (b byName) addRow(name, uuid string) {
	if b[name] == nil {
		b[name] = map[string]plan.None{}
	}
	b[name][uuid] = plan.None{}
}

func (b byName) removeRow(name, uuid string) {
	if delete(b[name], uuid); len(b[name]) == 0 {
		delete(b, name)
	}
}

func newMirror(s schema) *mirror {
	return &mirror{schema: s, rows: map[string]*row{}, ours: map[plan.RowID]*row{}, extra: map[string]*row{},
		elems: map[plan.SetElem]plan.None{}, edges: map[string][]edge{}, undecided: map[string]plan.None{},
		routerPorts: byName{}, bindings: byName{},
		touched: map[plan.RowID]plan.None{}, touchedElems: map[plan.SetElem]plan.None{}}
}

// rowUpdate is a <row-update2> of ovsdb-server(7) 4.1.14.
type rowUpdate struct {
	Initial map[string]any   `json:"initial"`
	Insert  map[string]any   `json:"insert"`
	Modify  map[string]any   `json:"modify"`
	Delete  *json.RawMessage `json:"delete"`
}

type tableUpdates map[string]map[string]json.RawMessage

// applyUpdate applies one notification.
func (m *mirror) applyUpdate(u tableUpdates) error {
	for name, rows := range u {
		t := m.schema[name]
		if t == nil {
			return fmt.Errorf("notification about table %s, which the schema does not have", name)
		}
		for uuid, raw := range rows {
			var ru rowUpdate
			if err := json.Unmarshal(raw, &ru); err != nil {
				return fmt.Errorf("table %s, row %s: %w", name, uuid, err)
			}
			if err := m.updateRow(t, uuid, ru); err != nil {
				return fmt.Errorf("table %s, row %s: %w", name, uuid, err)
			}
		}
	}
	m.settleIndexed()
	return nil
}

func (m *mirror) updateRow(t *table, uuid string, ru rowUpdate) error {
	if r := m.rows[uuid]; r != nil && r.table != t {
		return fmt.Errorf("it is known as one of table %s", r.table.name)
	}
	switch {
	case ru.Initial != nil:
		return m.insertRow(t, uuid, ru.Initial)
	case ru.Insert != nil:
		return m.insertRow(t, uuid, ru.Insert)
	case ru.Modify != nil:
		return m.modifyRow(uuid, ru.Modify)
	}
	if r := m.rows[uuid]; r != nil {
		m.unmarkOurs(r)
		for name, v := range r.cols {
			m.removeReferences(r, r.table.cols[name], v.set)
		}
		m.indexByName(r, byName.removeRow)
		delete(m.rows, uuid)
	}
	return nil
}

func (m *mirror) insertRow(t *table, uuid string, cols map[string]any) error {
	if m.rows[uuid] != nil {
		return fmt.Errorf("inserted, but known")
	}
	r := &row{uuid: uuid, table: t, cols: make(map[string]value, len(cols))}
	for name, raw := range cols {
		c := t.cols[name]
		if c == nil {
			continue
		}
		v, err := c.fromWire(raw)
		if err != nil {
			return err
		}
		r.cols[name] = v
		m.addReferences(r, c, v.set)
	}
	m.rows[uuid] = r
	m.indexByName(r, byName.addRow)
	m.markOurs(r)
	return nil
}

func (m *mirror) modifyRow(uuid string, cols map[string]any) error {
	r := m.rows[uuid]
	if r == nil {
		return fmt.Errorf("modified, but not known")
	}
	m.recheckDependents(r)
	m.indexByName(r, byName.removeRow)
	for name, raw := range cols {
		c := r.table.cols[name]
		if c == nil {
			continue
		}
		diff, err := c.fromWire(raw)
		if err != nil {
			return err
		}
		m.setColumn(r, c, diff)
	}
	m.indexByName(r, byName.addRow)
	m.recheckDependents(r)
	if m.keyOf(r) != r.key {
		m.unmarkOurs(r)
		m.markOurs(r)
	}
	if r.key != (plan.RowID{}) {
		m.touched[r.key] = plan.None{}
	}
	return nil
}

func (m *mirror) setColumn(r *row, c *column, diff value) {
	old := r.valueOf(c.name)
	v := old.applyDiff(c, diff)
	r.cols[c.name] = v
	if c.ref != "" {
		changed := symmetricDiff(old.set, v.set)
		m.removeReferences(r, c, slices.DeleteFunc(slices.Clone(changed), v.hasAtom))
		m.addReferences(r, c, slices.DeleteFunc(changed, old.hasAtom))
	}
	if r.table.name == tableAddressSet && c.name == colAddresses && m.ours[r.key] == r {
		m.setElems(r.key.Name, diff.set, v)
	}
}

// setElems brings elems of set up to date with v, where addrs differ from before.
func (m *mirror) setElems(set string, addrs []string, v value) {
	for _, a := range addrs {
		e := plan.SetElem{Set: set, Addr: a}
		if v.hasAtom(a) {
			m.elems[e] = plan.None{}
		} else {
			delete(m.elems, e)
		}
		m.touchedElems[e] = plan.None{}
	}
}

func (m *mirror) addReferences(r *row, c *column, uuids []string) {
	if c.ref == "" {
		return
	}
	for _, u := range uuids {
		m.edges[u] = append(m.edges[u], edge{r, c})
		m.touchReferred(u)
	}
}

func (m *mirror) removeReferences(r *row, c *column, uuids []string) {
	if c.ref == "" {
		return
	}
	for _, u := range uuids {
		m.edges[u] = slices.DeleteFunc(m.edges[u], func(e edge) bool { return e.from == r && e.col == c })
		if len(m.edges[u]) == 0 {
			delete(m.edges, u)
		}
		m.touchReferred(u)
	}
}

// touchReferred notes that a row's parent may have changed.
func (m *mirror) touchReferred(uuid string) {
	r := m.rows[uuid]
	if r == nil {
		return
	}
	if r.table.name == tableEncap {
		m.undecided[uuid] = plan.None{}
	}
	if r.key != (plan.RowID{}) {
		m.touched[r.key] = plan.None{}
	}
}

// keyOf is the row's key, zero when the row is not ours.
func (m *mirror) keyOf(r *row) plan.RowID {
	switch {
	case r.table.name == tableGlobal:
		return plan.RowID{Table: tableGlobal}
	case r.table.index == nil:
		ids := r.cols["external_ids"].kv
		if ids[keyOwner] == owner && ids[keyID] != "" {
			return plan.RowID{Table: r.table.name, Name: ids[keyID]}
		}
	case m.indexedOurs(r):
		return r.table.foundKey(r.cols)
	}
	return plan.RowID{}
}

func (m *mirror) indexedOurs(r *row) bool {
	switch r.table.name {
	case tableGroup:
		return strings.HasPrefix(r.cols["name"].scalarAtom(), groupMark)
	case tableEncap:
		return slices.ContainsFunc(m.edges[r.uuid], func(e edge) bool { return e.from.key != plan.RowID{} })
	case tableMACBinding:
		return m.ownsPort(r.cols["logical_port"].scalarAtom())
	}
	return false
}

func (m *mirror) ownsPort(name string) bool {
	for uuid := range m.routerPorts[name] {
		if m.rows[uuid].key != (plan.RowID{}) {
			return true
		}
	}
	return false
}

// indexByName notes a row in the index that it is in, or takes it out there.
func (m *mirror) indexByName(r *row, note func(b byName, name, uuid string)) {
	switch r.table.name {
	case tableRouterPort:
		note(m.routerPorts, r.valueOf("name").scalarAtom(), r.uuid)
	case tableMACBinding:
		note(m.bindings, r.valueOf("logical_port").scalarAtom(), r.uuid)
	}
}

// settleIndexed decides again on rows that are ours through another row, now that a whole notification has been
// applied.
func (m *mirror) settleIndexed() {
	for uuid := range m.undecided {
		if r := m.rows[uuid]; r != nil && m.keyOf(r) != r.key {
			m.unmarkOurs(r)
			m.markOurs(r)
		}
	}
	clear(m.undecided)
}

func (m *mirror) markOurs(r *row) {
	m.recheckDependents(r)
	r.key = m.keyOf(r)
	if r.key == (plan.RowID{}) {
		return
	}
	m.touched[r.key] = plan.None{}
	if m.ours[r.key] != nil {
		m.extra[r.uuid] = r
		return
	}
	m.ours[r.key] = r
	if r.table.name == tableAddressSet {
		v := r.valueOf(colAddresses)
		m.setElems(r.key.Name, v.set, v)
	}
}

// recheckDependents notes the rows that are ours only if r is.
func (m *mirror) recheckDependents(r *row) {
	switch r.table.name {
	case "Chassis":
		for _, u := range r.valueOf("encaps").set {
			m.undecided[u] = plan.None{}
		}
	case tableRouterPort:
		maps.Copy(m.undecided, m.bindings[r.valueOf("name").scalarAtom()])
	case tableEncap, tableMACBinding:
		m.undecided[r.uuid] = plan.None{}
	}
}

func (m *mirror) unmarkOurs(r *row) {
	m.recheckDependents(r)
	key := r.key
	if key == (plan.RowID{}) {
		return
	}
	m.touched[key] = plan.None{}
	r.key = plan.RowID{}
	if m.ours[key] != r {
		delete(m.extra, r.uuid)
		return
	}
	delete(m.ours, key)
	if r.table.name == tableAddressSet {
		m.setElems(key.Name, r.valueOf(colAddresses).set, value{})
	}
	for _, x := range m.extra {
		if x.key == key {
			delete(m.extra, x.uuid)
			m.markOurs(x)
			return
		}
	}
}
