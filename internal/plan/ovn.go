package plan

import (
	"maps"
	"slices"
)

// RowID names one row of an OVN database for good: the plane keeps Name in the row's external_ids
// (`k8s.ovn.org/id`), so a row found in the database names its owner. Table is the OVSDB table's name.
type RowID struct{ Table, Name string }

// Row is one Northbound or Southbound row.
type Row struct {
	// Parent is the row whose set of children this row is in (a policy's router, a port's switch). Zero for a
	// root row. Which column of the parent that is follows from the two tables.
	Parent RowID
	// Groups are the Port_Groups that a switch port is in besides its switch, sorted.
	Groups []RowID
	Cols   Cols
}

// Cols are a row's columns by OVSDB name. A value is a string, int, bool, []string (an OVSDB set, sorted),
// map[string]string, RowID or []RowID (references, sorted; the plane maps them to UUIDs). Columns that are absent are
// not ours: the plane leaves them as they are. `external_ids` holds the keys this row wants besides the plane's own
// marks.
type Cols map[string]any

// Equal compares two rows column by column.
func (r Row) Equal(o Row) bool {
	return r.Parent == o.Parent && slices.Equal(r.Groups, o.Groups) && maps.EqualFunc(r.Cols, o.Cols, equalValue)
}

// EqualRows is Row.Equal as the function that Diff takes.
func EqualRows(a, b Row) bool { return a.Equal(b) }

func equalValue(a, b any) bool {
	switch x := a.(type) {
	case []string:
		y, ok := b.([]string)
		return ok && slices.Equal(x, y)
	case []RowID:
		y, ok := b.([]RowID)
		return ok && slices.Equal(x, y)
	case map[string]string:
		y, ok := b.(map[string]string)
		return ok && maps.Equal(x, y)
	}
	return a == b
}

// SetElem is one address or prefix in an Address_Set. Set is the RowID.Name of the set's row. The column `addresses` of
// an Address_Set is never in Cols: the elements are, one by one, so that a pod joins by one element (law 2).
type SetElem struct{ Set, Addr string }
