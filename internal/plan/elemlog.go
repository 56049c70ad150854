package plan

// elemLog remembers which set elements were claimed or given up lately, so that a plane need not compare thousands of members when one pod
// joins.
type elemLog struct {
	recent  []SetElem
	dropped int // how many older ones are no longer in recent
}

// maxElemLog bounds the log: what is longer ago costs a whole comparison.
const maxElemLog = 4096

func (l *elemLog) note(old, new map[SetElem]None) {
	for e := range old {
		if _, stays := new[e]; !stays {
			l.recent = append(l.recent, e)
		}
	}
	for e := range new {
		if _, was := old[e]; !was {
			l.recent = append(l.recent, e)
		}
	}
	if over := len(l.recent) - maxElemLog; over > 0 {
		l.recent = append([]SetElem(nil), l.recent[over:]...)
		l.dropped += over
	}
}

// ElemMark is the present moment in the life of SetElems.
func (s *State) ElemMark() int { return s.elems.dropped + len(s.elems.recent) }

// ElemsSince are the elements that may be other than at a moment that ElemMark gave, some of them repeatedly. ok is false when that is too
// long ago: any may be.
func (s *State) ElemsSince(mark int) (changed []SetElem, ok bool) {
	if mark < s.elems.dropped {
		return nil, false
	}
	return s.elems.recent[mark-s.elems.dropped:], true
}
