package world

// World is all tables, with the methods that change them. It is not safe for concurrent use: one loop owns it. It also
// has the methods of a View: called on a World they record nothing.
type World struct {
	View
}

// View is what features read a world through. Each of its methods records what it looked at, so that what was computed
// from it is computed again when, and only when, that changes. Methods that do not record are World's.
type View struct {
	Self   string // this node's name; "" in the controller
	Config *Config

	*tables
	reader   *Reader // nil when nobody records
	followed Entry   // is not recorded
	over     bool    // its Reader has read
}

// Zone is this node and its host, once both are known well enough to have a logical network: an id, pod subnets, and an
// uplink. Nothing that belongs to that network can be compiled before.
func (w *View) Zone() (n *Node, h *Host, ok bool) {
	n, h = w.Node(w.Self), w.Host()
	return n, h, n != nil && h != nil && n.ID != 0 && len(n.Subnets) > 0
}

// ForgetReaders forgets all Readers, whose owners are gone.
func (w *World) ForgetReaders() {
	clear(w.sources)
	w.keepDerivedTables()
}

// renewDerived computes again what follows from a change of the world, when that is complete.
func (w *World) renewDerived() {
	for again := true; again; {
		again = false
		for _, renew := range w.derived {
			again = renew(w) || again
		}
	}
}

func (w *View) noteRead(k Kind, key string) {
	if e := (Entry{k, key}); w.isRecording() && e != w.followed {
		w.reader.noteRead(e)
	}
}

func (w *View) noteSource(s *source) {
	if w.isRecording() {
		w.reader.noteSource(s)
	}
}

func (w *View) isRecording() bool {
	if w.over {
		panic("a view was used after its Reader had read")
	}
	return w.reader != nil
}
