package kube

import (
	"fmt"
	"time"
)

// A watch can be late for these causes:
//
//   - The connection is dead or half open: HTTP/2 pings find it within idlePing and pingTimeout, and the reflector
//     watches again.
//   - The connection lives and brings nothing of one kind, because a proxy swallows it or the API server hangs: a
//     stillness finds it within StillAtMost. It ends what is under way, and a consistent list follows.
//   - The API server refuses the kind: reflectors ask again within a second, and log it. Nothing bounds that.
//   - Events come late, but bookmarks or other events come: nothing bounds that.
//
// An API server sends a bookmark each minute (1.36), but none with the version that a watch began at. For a kind that
// does not change that version is the last one until somebody reads the kind consistently, or etcd says how far it is,
// by default each ten minutes. So a watch that is silent has such a read made: a bookmark follows within a minute.
const (
	// StillAtMost is how long a watch can bring nothing before its kind is listed.
	StillAtMost = lookEvery + endAfter

	lookEvery = 30 * time.Second // bookmarks wake nobody
	askAfter  = 75 * time.Second
	endAfter  = 150 * time.Second
)

// stillness judges whether the watch of one kind stands still. It has no clock.
type stillness struct {
	signs, tries uint64    // as counted when it was last asked
	heard        time.Time // when the watch last brought something; at first, when it was first asked
	since        time.Time // the same, or when a later request to the API server began
	asked        bool      // for a bookmark, after since
	late         bool      // the watch has brought nothing since it was found to stand still
}

// remedy is what is done about a watch that is silent.
type remedy int

const (
	leaveWatch remedy = iota
	askForBookmark
	endWatch
)

// judgeSigns takes in how many signs of life the watch has given, and how many requests have begun. It returns what to
// do, and when to ask again.
func (s *stillness) judgeSigns(signs, tries uint64, now time.Time) (do remedy, again time.Time) {
	if signs != s.signs || s.heard.IsZero() {
		s.heard, s.late = now, false
	}
	if signs != s.signs || tries != s.tries || s.since.IsZero() {
		s.since, s.asked = now, false
	}
	s.signs, s.tries = signs, tries
	switch silent := now.Sub(s.since); {
	case silent >= endAfter:
		do, s.late, s.since, s.asked = endWatch, true, now, false
	case silent >= askAfter && !s.asked:
		do, s.asked = askForBookmark, true
	}
	again = now.Add(lookEvery)
	for _, after := range []time.Duration{askAfter, endAfter} {
		if at := s.since.Add(after); at.After(now) && at.Before(again) {
			again = at
		}
	}
	return do, again
}

// LookAtWatches ends watches that stand still: the whole kinds are listed then. It returns when to look again. One
// goroutine calls it and StandingStill.
func (s *Source) LookAtWatches(now time.Time) (again time.Time) {
	for i, k := range s.kinds {
		t := s.tables[i]
		do, at := t.still.judgeSigns(t.signs.Load(), t.stream.tries.Load(), now)
		if again.IsZero() || at.Before(again) {
			again = at
		}
		switch do {
		case askForBookmark:
			s.askForBookmark(k)
		case endWatch:
			s.log.Warn("a watch stands still: it is ended, and all is listed again", "resource", describeKind(k),
				"since", t.still.heard.UTC().Format(time.RFC3339))
			t.stream.endCurrent()
			s.ended(k)
		}
	}
	return again
}

// TellEnded has a caller that does not Run the source told when the watch of a kind is ended.
func (s *Source) TellEnded(ended func(Kind)) { s.ended = ended }

// StandingStill describes the watches that stand still, for people.
func (s *Source) StandingStill() (texts []string) {
	for i, k := range s.kinds {
		if still := &s.tables[i].still; still.late {
			texts = append(texts, fmt.Sprintf("the watch of %s has brought nothing since %s, not even a bookmark, and "+
				"all is listed every few minutes: see whether a proxy before the API server holds events back",
				describeKind(k), still.heard.UTC().Format(time.RFC3339)))
		}
	}
	return texts
}

func describeKind(k Kind) string {
	if all, _ := k.fieldSelectors(); !all.Empty() {
		return k.pluralName() + " with " + all.String()
	}
	return k.pluralName()
}
