package world

// A Derived is a value by key that follows from what a world has now. It is computed when it is read first, and again
// when something that was read for it has changed. Its Readers are told if it has become another one then. A value that
// depends on what was before cannot be one.
type Derived[K, V comparable] struct {
	of     func(v *View, k K) V
	exists func(w *View, k K) bool // a value is kept for as long
	entry  func(k K) Entry         // how followers of the world know the value; nil: they do not
	values map[K]*derivedValue[V]
	stale  map[K]struct{}
}

// derivedValue is one value of a Derived, and what it was computed from.
type derivedValue[V any] struct {
	source
	from  *Reader
	value V
}

// keepDerived has a world keep a Derived.
func keepDerived[K, V comparable](w *World, d Derived[K, V]) *Derived[K, V] {
	d.values, d.stale = map[K]*derivedValue[V]{}, map[K]struct{}{}
	w.derived = append(w.derived, d.renewValues)
	return &d
}

// valueOf returns the value of a key. One that does not exist is computed for each Reader.
func (d *Derived[K, V]) valueOf(v *View, k K) V {
	if _, is := d.stale[k]; is {
		d.renewValue(v, k)
	}
	one := d.values[k]
	if one == nil && !d.exists(v, k) {
		return d.of(v, k)
	}
	if one == nil {
		one = &derivedValue[V]{from: NewReader(func() { d.stale[k] = struct{}{} })}
		d.values[k] = one
		d.computeValue(v, k, one)
	}
	v.noteSource(&one.source)
	return one.value
}

func (d *Derived[K, V]) computeValue(v *View, k K, one *derivedValue[V]) {
	w := &World{View{Self: v.Self, Config: v.Config, tables: v.tables}}
	one.from.Read(w, func(v *View) { one.value = d.of(v, k) })
}

// renewValue computes a value again, or forgets one that nobody has to read any more.
func (d *Derived[K, V]) renewValue(v *View, k K) {
	delete(d.stale, k)
	one := d.values[k]
	was, exists := one.value, d.exists(v, k)
	if exists {
		d.computeValue(v, k, one)
	} else {
		one.from.ForgetReads()
		delete(d.values, k)
	}
	if exists && one.value == was {
		return
	}
	if one.tellReaders(); d.entry != nil {
		e := d.entry(k)
		v.noteChanged(e.Kind, e.Key)
	}
}

// renewValues computes all that is stale.
func (d *Derived[K, V]) renewValues(w *World) (any bool) {
	for k := range d.stale {
		d.renewValue(&w.View, k)
		any = true
	}
	return any
}
