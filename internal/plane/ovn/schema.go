package ovn

import (
	"slices"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/egret-net/egret/internal/plan"
)

const (
	keyID     = "k8s.ovn.org/id"
	keyOwner  = "k8s.ovn.org/owner-controller"
	owner     = "egret"
	groupMark = "egret-" // of a Load_Balancer_Group's name

	tableGlobal     = "NB_Global"
	tableGroup      = "Load_Balancer_Group"
	tablePortGroup  = "Port_Group"
	tableAddressSet = "Address_Set"
	tableEncap      = "Encap"
	tableMACBinding = "Static_MAC_Binding"
	tableSwitchPort = "Logical_Switch_Port"
	tableRouterPort = "Logical_Router_Port"
	colAddresses    = "addresses"
)

// column is a column's type. Atoms are kept as text, so that one form of value serves every column.
type column struct {
	name     string
	key, val string // atomic types (RFC 7047 3.2); val is "" but for maps
	ref      string // table that a uuid column refers to
	min, max int    // max -1 is unlimited
}

func (c *column) isMap() bool { return c.val != "" }

// table is what the plane has to know of one table.
type table struct {
	name string
	cols map[string]*column
	root bool
	// children are the columns that hold child rows, by the child's table.
	children map[string]*column
	// index is the columns that tell rows of a table without external_ids apart; nil for all other tables.
	index []string
	// rank orders tables: a row refers to rows of the same or a lower rank only, but for children in columns. No switch
	// port is there before its ACLs.
	rank int
}

type schema map[string]*table

// childColumn returns the one column of table parent that refers to table child; nil without one, or with several.
func (s schema) childColumn(parent, child string) *column {
	if t := s[parent]; t != nil {
		return t.children[child]
	}
	return nil
}

// findChildren fills children.
func (t *table) findChildren() {
	count := map[string]int{}
	for _, c := range t.cols {
		if c.ref != "" && !c.isMap() {
			count[c.ref]++
			t.children[c.ref] = c
		}
	}
	for child, n := range count {
		if n > 1 {
			delete(t.children, child)
		}
	}
}

// indexedTables are the tables without external_ids.
func indexedTables(name string) []string {
	switch name {
	case tableGroup:
		return []string{"name"}
	case tableEncap:
		return []string{"type", "ip"}
	case tableMACBinding:
		return []string{"logical_port", "ip"}
	}
	return nil
}

// tableRank returns the table's place: sets before the rules that name them, groups before the switches and routers
// that refer to them, ACLs before the ports that they are about, other children last.
func tableRank(name string, root bool) int {
	switch {
	case name == "Load_Balancer":
		return 1
	case name == "Logical_Switch" || name == "Logical_Router" || name == "Chassis":
		return 2
	case name == "ACL":
		return 3
	case name == tableSwitchPort || name == tableRouterPort:
		return 4
	case !root || name == tableMACBinding:
		return 5
	}
	return 0
}

// removalRank returns the table's place among removals, which come after all that is made: a switch port goes before
// its ACLs and groups.
func removalRank(name string) int {
	if name == tableSwitchPort {
		return 8
	}
	return 9
}

func newSchema(db ovsdb.DatabaseSchema) schema {
	s := schema{}
	for name, ts := range db.Tables {
		t := &table{name: name, cols: map[string]*column{}, children: map[string]*column{}, root: ts.IsRoot,
			index: indexedTables(name), rank: tableRank(name, ts.IsRoot)}
		for c, cs := range ts.Columns {
			t.cols[c] = newColumn(c, cs)
		}
		t.findChildren()
		s[name] = t
	}
	return s
}

func newColumn(name string, cs *ovsdb.ColumnSchema) *column {
	c := &column{name: name, key: cs.Type, min: 1, max: 1}
	if o := cs.TypeObj; o != nil {
		c.key, c.min, c.max = o.Key.Type, o.Min(), o.Max()
		if o.Value != nil {
			c.val = o.Value.Type
		}
		if c.key == ovsdb.TypeUUID {
			c.ref, _ = o.Key.RefTable()
		}
	}
	return c
}

// rowKey is the identity of a wanted row in the database: RowID itself, or the values of the index where there are no
// external_ids.
func (s schema) rowKey(id plan.RowID, r plan.Row) plan.RowID {
	t := s[id.Table]
	switch {
	case id.Table == tableGlobal:
		return plan.RowID{Table: tableGlobal}
	case t == nil || t.index == nil:
		return id
	case id.Table == tableGroup:
		return plan.RowID{Table: id.Table, Name: groupName(id, r)}
	}
	parts := make([]string, len(t.index))
	for i, c := range t.index {
		parts[i], _ = r.Cols[c].(string)
	}
	return plan.RowID{Table: id.Table, Name: strings.Join(parts, " ")}
}

func groupName(id plan.RowID, r plan.Row) string {
	name, ok := r.Cols["name"].(string)
	if !ok {
		name = id.Name
	}
	return groupMark + strings.TrimPrefix(name, groupMark)
}

// foundKey is key for a row found in the database.
func (t *table) foundKey(cols map[string]value) plan.RowID {
	parts := make([]string, len(t.index))
	for i, c := range t.index {
		parts[i] = cols[c].scalarAtom()
	}
	return plan.RowID{Table: t.name, Name: strings.Join(parts, " ")}
}

// monitorRequests are the columns that the local copy holds, by table.
func (s schema) monitorRequests(southbound bool) map[string]ovsdb.MonitorRequest {
	m := map[string]ovsdb.MonitorRequest{}
	for name, t := range s {
		// The Southbound is large and belongs to ovn-northd; we need nothing else of it.
		if southbound && name != "Chassis" && name != tableEncap || name == "Connection" || name == "SSL" {
			continue
		}
		var cols []string
		for c := range t.cols {
			if !strings.HasSuffix(c, "_timestamp") && (!southbound || c != "nb_cfg") {
				cols = append(cols, c)
			}
		}
		slices.Sort(cols)
		m[name] = ovsdb.MonitorRequest{Columns: cols}
	}
	return m
}
