package world

// View is what features read a world through. Each of its methods records what it looked at, so that what was computed
// from it is computed again when, and only when, that changes. Methods that do not record are World's.
type View struct {
	Self   string // this node's name; "" in the controller
	Config *Config

	*tables
	read func(Entry) // nil when nobody records
}

// Recording is the same world, telling read of everything that is looked at through it.
func (w *World) Recording(read func(Entry)) *View {
	v := w.View
	v.read = read
	return &v
}

func (w *View) noteRead(k Kind, key string) {
	if w.read != nil {
		w.read(Entry{k, key})
	}
}
