package world

// View is what features read a world through. Each of its methods records what it looked at, so that what was computed
// from it is computed again when, and only when, that changes. Methods that do not record are World's.
type View struct {
	Self   string // this node's name; "" in the controller
	Config *Config

	*tables
	reader *Reader // nil when nobody records
	over   bool    // its Reader has read
}

func (w *View) noteRead(k Kind, key string) {
	if w.isRecording() {
		w.reader.noteRead(Entry{k, key})
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
