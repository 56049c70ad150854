package ovn

import (
	"cmp"
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// change is one row to write, one row to remove, or one address of a set to add or remove.
type change struct {
	w     *wanted // row to write
	row   *row    // row that is there; nil: a new one
	elem  plan.SetElem
	del   bool
	owner plan.Owner
}

// applyOrder returns the place of the change: see table.rank.
func (c *change) applyOrder(s schema) int {
	switch {
	case c.del && c.row != nil:
		return removalRank(c.row.table.name)
	case c.del:
		return removalRank(tableAddressSet)
	case c.w == nil:
		return 1 // elements: after the sets, before the rules that name them
	}
	return s[c.w.id.Table].rank
}

func (c *change) String() string {
	text := tableAddressSet + "/" + c.elem.Set + " " + c.elem.Addr
	switch {
	case c.w != nil:
		text = c.w.id.String()
	case c.row != nil:
		text = c.row.table.name + " " + c.row.uuid
	}
	if c.del {
		return "removal of " + text
	}
	return text
}

// isElement says whether c is about an address of a set.
func (c *change) isElement() bool { return c.w == nil && c.row == nil }

// groupID names changes that only make sense together: a Chassis must have an Encap (Chassis.encaps has at least one),
// a Meter a Meter_Band, and an address that goes from one set to another, as a pod's that another EgressIP serves, must
// be in both at no time.
func (c *change) groupID() plan.RowID {
	switch {
	case c.isElement():
		return plan.RowID{Table: tableAddressSet, Name: "address " + c.elem.Addr}
	case c.w == nil:
		return plan.RowID{}
	case c.w.id.Table == tableEncap, c.w.id.Table == "Meter_Band":
		return c.w.row.Parent
	case c.w.id.Table == "Chassis", c.w.id.Table == "Meter":
		return c.w.id
	}
	return plan.RowID{}
}

// refusal is a change that the database does not take.
type refusal struct {
	change
	err error
}

// differ compares the local copy with a plan. puts comes before dels: it counts what it finds, so that nothing has to
// be searched for removals when everything that is there is wanted.
type differ struct {
	m       *mirror
	applied map[plan.RowID]*wanted
	rows    plan.Table[plan.RowID, plan.Row]
	elems   plan.Table[plan.SetElem, plan.None]
	// state is what rows and elems belong to, and these are what of them can differ.
	state        *plan.State
	changed      plan.Changes[plan.RowID]
	changedElems plan.Changes[plan.SetElem]
	shrinking    bool // the rows are followed apart from those that grow

	found   int                 // wanted and there, if all are looked at
	byIndex map[plan.RowID]bool // keys of wanted rows that have another key than their RowID
}

// rowsToPut are the rows to write. Rows that are as wanted are noted in applied, so that they cost next to nothing next
// time.
func (d *differ) rowsToPut() (puts []change, bad []refusal) {
	d.byIndex = map[plan.RowID]bool{}
	for id, r := range plan.RowsOf(d.changed, d.rows) {
		if a := d.applied[id]; a != nil && a.isSameRow(id, r) {
			d.found++
			continue
		}
		w := newWanted(d.m.schema, d.rows, id, r)
		c := change{w: w, row: d.m.ours[w.key], owner: d.rows.Owner(id)}
		d.countFound(&c)
		switch held, err := d.checkRow(w); {
		case err != nil:
			bad = append(bad, refusal{c, err})
		case held:
			d.applied[w.key] = w
		default:
			puts = append(puts, c)
		}
	}
	return puts, bad
}

func (d *differ) checkRow(w *wanted) (held bool, err error) {
	delete(d.applied, w.key)
	if err := w.checkAgainst(d.m.schema); err != nil {
		return false, err
	}
	return d.m.holdsRow(w)
}

func (d *differ) countFound(c *change) {
	twice := d.byIndex[c.w.key]
	if c.w.key != c.w.id {
		d.byIndex[c.w.key] = true
	}
	if c.row != nil && !twice {
		d.found++
	}
}

// elemChanges are the addresses to add, and to remove: those that nobody wants of sets that stay, and of others where
// the address is added elsewhere. The rest goes with its set.
func (d *differ) elemChanges() []change {
	delta := plan.DiffOf(d.changedElems, d.m.elems, d.elems, plan.Same)
	var cs []change
	added := map[string]bool{}
	for e := range delta.Put {
		added[e.Addr] = true
		cs = append(cs, change{elem: e, owner: d.elems.Owner(e)})
	}
	for e := range delta.Del {
		if _, stays := d.rows[plan.RowID{Table: tableAddressSet, Name: e.Set}]; stays || added[e.Addr] {
			cs = append(cs, change{elem: e, del: true})
		}
	}
	return cs
}

// rowsToDelete are the rows of ours that nobody wants.
func (d *differ) rowsToDelete() []change {
	var dels []change
	for _, r := range d.m.extra {
		dels = append(dels, change{row: r, del: true})
	}
	if d.changed.Known {
		return d.changedDels(dels)
	}
	if d.found == len(d.m.ours) {
		return dels
	}
	for key, r := range d.m.ours {
		if _, wanted := d.rows[key]; !wanted && !d.byIndex[key] && key.Table != tableGlobal {
			delete(d.applied, key)
			dels = append(dels, change{row: r, del: true})
		}
	}
	return dels
}

func (d *differ) changedDels(dels []change) []change {
	for _, id := range d.changed.Keys {
		r := d.m.ours[id]
		if _, wanted := d.rows[id]; r != nil && !wanted && id.Table != tableGlobal {
			delete(d.applied, id)
			dels = append(dels, change{row: r, del: true})
		}
	}
	return dels
}

// followChanges looks at what changed only, if the rows are found by their RowID: of one that is told apart by its
// columns the key is not known any more when it has gone, and others refer to it by that.
func (d *differ) followChanges(c plan.Changes[plan.RowID]) {
	byColumns := func(id plan.RowID) bool {
		t := d.m.schema[id.Table]
		return t != nil && t.index != nil
	}
	if c.Known && !slices.ContainsFunc(c.Keys, byColumns) {
		d.changed = c.Once()
	}
}

// yieldingRemovals are the removals of rows that a row of puts is taken from: a new node has the address, and so the
// Encap, of one that is gone, and a Chassis cannot be without an Encap.
func (d *differ) yieldingRemovals(puts []change) []change {
	losing := map[*row]bool{}
	for _, c := range puts {
		if c.row == nil || c.row.table.root {
			continue
		}
		for _, e := range d.m.edges[c.row.uuid] {
			if e.from.key != c.w.keyOf(c.w.row.Parent) {
				losing[e.from] = true
			}
		}
	}
	if len(losing) == 0 {
		return nil
	}
	return slices.DeleteFunc(d.rowsToDelete(), func(c change) bool { return !losing[c.row] })
}

// sortChanges orders changes so that any cut between groups leaves what comes first complete in itself.
func sortChanges(s schema, cs []change) {
	slices.SortFunc(cs, func(a, b change) int {
		ga, gb := a.groupID(), b.groupID()
		return cmp.Or(
			cmp.Compare(a.groupRank(s), b.groupRank(s)),
			cmp.Compare(ga.Name, gb.Name),
			cmp.Compare(a.applyOrder(s), b.applyOrder(s)),
			a.owner.Compare(b.owner),
			cmp.Compare(a.String(), b.String()))
	})
}

// groupRank keeps a group together: at its first member's rank.
func (c *change) groupRank(s schema) int {
	if g := c.groupID(); g != (plan.RowID{}) {
		return s[g.Table].rank
	}
	return c.applyOrder(s)
}
