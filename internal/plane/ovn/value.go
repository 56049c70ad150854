package ovn

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/egret-net/egret/internal/plan"
)

// value is a column's content: a sorted set of atoms as text (one atom for a scalar), or a map of them.
type value struct {
	set []string
	kv  map[string]string
}

func (v value) equalValue(o value) bool { return slices.Equal(v.set, o.set) && maps.Equal(v.kv, o.kv) }

func (v value) hasAtom(atom string) bool {
	_, ok := slices.BinarySearch(v.set, atom)
	return ok
}

// scalarAtom is a scalar's content; "" for an empty set.
func (v value) scalarAtom() string {
	if len(v.set) == 0 {
		return ""
	}
	return v.set[0]
}

// applyDiff applies the change that an update2 notification carries (ovsdb-server(7) 4.1.14): the symmetric difference
// of sets and maps, the new value of what holds one atom at most.
func (v value) applyDiff(c *column, diff value) value {
	switch {
	case c.isMap():
		kv := maps.Clone(v.kv)
		if kv == nil {
			kv = map[string]string{}
		}
		for k, d := range diff.kv {
			if old, ok := kv[k]; ok && old == d {
				delete(kv, k)
			} else {
				kv[k] = d
			}
		}
		return value{kv: kv}
	case c.max == 1:
		return diff
	}
	return value{set: symmetricDiff(v.set, diff.set)}
}

// symmetricDiff returns the symmetric difference of two sorted sets. It compares few elements if b is small: an update
// of a large set often brings one.
func symmetricDiff(a, b []string) []string {
	out := make([]string, 0, len(a)+len(b))
	for _, x := range b {
		i, is := slices.BinarySearch(a, x)
		if out, a = append(out, a[:i]...), a[i:]; is {
			a = a[1:]
		} else {
			out = append(out, x)
		}
	}
	return append(out, a...)
}

// fromWire reads a column in the form of RFC 7047 5.1.
func (c *column) fromWire(raw any) (value, error) {
	list, _ := raw.([]any)
	if len(list) == 2 {
		inner, _ := list[1].([]any)
		switch list[0] {
		case "map":
			return c.mapFromWire(inner)
		case "set":
			return c.setFromWire(inner)
		}
	}
	return c.setFromWire([]any{raw})
}

func (c *column) setFromWire(atoms []any) (value, error) {
	v := value{set: make([]string, len(atoms))}
	for i, a := range atoms {
		text, err := atomFromWire(a)
		if err != nil {
			return v, fmt.Errorf("column %s: %w", c.name, err)
		}
		v.set[i] = text
	}
	slices.Sort(v.set)
	return v, nil
}

func (c *column) mapFromWire(pairs []any) (value, error) {
	v := value{kv: make(map[string]string, len(pairs))}
	for _, p := range pairs {
		kv, _ := p.([]any)
		if len(kv) != 2 {
			return v, fmt.Errorf("column %s: map pair %v", c.name, p)
		}
		k, err := atomFromWire(kv[0])
		if err != nil {
			return v, fmt.Errorf("column %s: %w", c.name, err)
		}
		if v.kv[k], err = atomFromWire(kv[1]); err != nil {
			return v, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return v, nil
}

func atomFromWire(a any) (string, error) {
	switch x := a.(type) {
	case string:
		return x, nil
	case bool:
		return strconv.FormatBool(x), nil
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64), nil
	case []any:
		if len(x) == 2 && x[0] == "uuid" {
			if u, ok := x[1].(string); ok {
				return u, nil
			}
		}
	}
	return "", fmt.Errorf("unknown atom %v", a)
}

// toWire writes v in libovsdb's notation.
func (c *column) toWire(v value) any {
	if c.isMap() {
		m := ovsdb.OvsMap{GoMap: make(map[any]any, len(v.kv))}
		for k, x := range v.kv {
			m.GoMap[atomToWire(c.key, k)] = atomToWire(c.val, x)
		}
		return m
	}
	if c.min == 1 && c.max == 1 && len(v.set) == 1 {
		return atomToWire(c.key, v.set[0])
	}
	return c.setToWire(v.set)
}

func (c *column) setToWire(atoms []string) ovsdb.OvsSet {
	s := ovsdb.OvsSet{GoSet: make([]any, len(atoms))}
	for i, a := range atoms {
		s.GoSet[i] = atomToWire(c.key, a)
	}
	return s
}

// atomToWire relies on checkAtom having seen the text.
func atomToWire(typ, text string) any {
	switch typ {
	case ovsdb.TypeInteger:
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	case ovsdb.TypeReal:
		f, _ := strconv.ParseFloat(text, 64)
		return f
	case ovsdb.TypeBoolean:
		return text == "true"
	case ovsdb.TypeUUID:
		return ovsdb.UUID{GoUUID: text}
	}
	return text
}

func checkAtom(typ, text string) error {
	var err error
	switch typ {
	case ovsdb.TypeInteger:
		_, err = strconv.ParseInt(text, 10, 64)
	case ovsdb.TypeReal:
		_, err = strconv.ParseFloat(text, 64)
	case ovsdb.TypeBoolean:
		if text != "true" && text != "false" {
			err = fmt.Errorf("%q is not a boolean", text)
		}
	case ovsdb.TypeUUID:
		err = fmt.Errorf("%q is no reference: use a RowID", text)
	}
	return err
}

// fromPlan reads a plan's value. resolve gives a referred row's uuid, or its named-uuid in the transaction at hand.
func (c *column) fromPlan(v any, resolve func(plan.RowID) (string, error)) (value, error) {
	switch x := v.(type) {
	case plan.RowID:
		return c.refsFromPlan([]plan.RowID{x}, resolve)
	case []plan.RowID:
		return c.refsFromPlan(x, resolve)
	case map[string]string:
		return c.mapFromPlan(x)
	case []string:
		return c.setFromPlan(slices.Clone(x))
	case string, int, bool:
		return c.scalarFromPlan(x)
	}
	return value{}, fmt.Errorf("column %s: a plan has no values of type %T", c.name, v)
}

func (c *column) refsFromPlan(ids []plan.RowID, resolve func(plan.RowID) (string, error)) (value, error) {
	if c.isMap() || c.key != ovsdb.TypeUUID {
		return value{}, fmt.Errorf("column %s holds %s, not references", c.name, c.key)
	}
	v := value{}
	for _, id := range ids {
		if c.ref != "" && id.Table != c.ref {
			return value{}, fmt.Errorf("column %s refers to %s, not to %s", c.name, c.ref, id.Table)
		}
		u, err := resolve(id)
		if err != nil {
			return value{}, fmt.Errorf("column %s: %w", c.name, err)
		}
		v.set = append(v.set, u)
	}
	slices.Sort(v.set)
	return v, c.checkCount(len(v.set))
}

func (c *column) mapFromPlan(kv map[string]string) (value, error) {
	if !c.isMap() {
		return value{}, fmt.Errorf("column %s is not a map", c.name)
	}
	for k, x := range kv {
		if err := checkAtom(c.key, k); err != nil {
			return value{}, fmt.Errorf("column %s: %w", c.name, err)
		}
		if err := checkAtom(c.val, x); err != nil {
			return value{}, fmt.Errorf("column %s: key %s: %w", c.name, k, err)
		}
	}
	return value{kv: kv}, nil
}

func (c *column) setFromPlan(set []string) (value, error) {
	if c.isMap() {
		return value{}, fmt.Errorf("column %s is a map", c.name)
	}
	for _, a := range set {
		if err := checkAtom(c.key, a); err != nil {
			return value{}, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	slices.Sort(set)
	set = slices.Compact(set)
	return value{set: set}, c.checkCount(len(set))
}

// scalarFromPlan also fills an optional column. A type must fit: 1 is no boolean and "1" no integer.
func (c *column) scalarFromPlan(v any) (value, error) {
	want := map[string]bool{}
	text := fmt.Sprint(v)
	switch v.(type) {
	case string:
		want[ovsdb.TypeString] = true
	case int:
		want[ovsdb.TypeInteger], want[ovsdb.TypeReal] = true, true
	case bool:
		want[ovsdb.TypeBoolean] = true
	}
	if c.isMap() || !want[c.key] {
		return value{}, fmt.Errorf("column %s holds %s%s, not %T", c.name, c.key, mapOf(c), v)
	}
	return value{set: []string{text}}, nil
}

func mapOf(c *column) string {
	if c.isMap() {
		return " -> " + c.val
	}
	return ""
}

func (c *column) checkCount(n int) error {
	if n < c.min || c.max >= 0 && n > c.max {
		return fmt.Errorf("column %s: %d values where %d to %d are possible", c.name, n, c.min, c.max)
	}
	return nil
}

// zeroValue is what a column holds that an update2 notification leaves out of a new row.
func (c *column) zeroValue() value {
	if c.isMap() || c.min == 0 {
		return value{}
	}
	switch c.key {
	case ovsdb.TypeInteger, ovsdb.TypeReal:
		return value{set: []string{"0"}}
	case ovsdb.TypeBoolean:
		return value{set: []string{"false"}}
	}
	return value{set: []string{""}}
}
