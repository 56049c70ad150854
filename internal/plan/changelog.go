package plan

// changeLog remembers which keys of a table were claimed, changed or given up lately, so that a plane need not compare thousands of them when
// one pod joins.
type changeLog[K comparable] struct {
	recent  []K
	dropped int // how many older ones are no longer in recent
}

// maxChangeLog bounds the log: what is longer ago costs a whole comparison. At twice that the older half goes, so that a full log costs no
// copy a change.
const maxChangeLog = 4096

func note[K, V comparable](l *changeLog[K], old, new map[K]V) {
	for k := range old {
		if _, stays := new[k]; !stays {
			l.recent = append(l.recent, k)
		}
	}
	for k, v := range new {
		if was, is := old[k]; !is || was != v {
			l.recent = append(l.recent, k)
		}
	}
	if over := len(l.recent) - maxChangeLog; over > maxChangeLog {
		l.recent = append([]K(nil), l.recent[over:]...)
		l.dropped += over
	}
}

func (l *changeLog[K]) mark() int { return l.dropped + len(l.recent) }

func (l *changeLog[K]) since(mark int) (changed []K, ok bool) {
	if mark < l.dropped {
		return nil, false
	}
	return l.recent[mark-l.dropped:], true
}

// ElemMark is the present moment in the life of SetElems.
func (s *State) ElemMark() int { return s.elems.mark() }

// ElemsSince are the elements that may be other than at a moment that ElemMark gave, some of them repeatedly. ok is false when that is too
// long ago: any may be.
func (s *State) ElemsSince(mark int) (changed []SetElem, ok bool) { return s.elems.since(mark) }

// SourceMark is the present moment in the life of Sources.
func (s *State) SourceMark() int { return s.sources.mark() }

// SourcesSince is to Sources what ElemsSince is to SetElems.
func (s *State) SourcesSince(mark int) (changed []Source, ok bool) { return s.sources.since(mark) }
