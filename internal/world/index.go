package world

import "slices"

// NoteInIndex keeps in an index whether a name is there under a key. The names of a key are sorted.
func NoteInIndex[K comparable](index map[K][]string, a K, name string, is bool) {
	at, found := slices.BinarySearch(index[a], name)
	switch {
	case is && !found:
		index[a] = slices.Insert(index[a], at, name)
	case !is && found:
		index[a] = slices.Delete(index[a], at, at+1)
	}
	if len(index[a]) == 0 {
		delete(index, a)
	}
}

func removeFromIndex[K comparable](from map[K][]string, at K, key string) {
	if from[at] = withoutString(from[at], key); len(from[at]) == 0 {
		delete(from, at)
	}
}

// withoutString is a new list.
func withoutString(list []string, s string) []string {
	var out []string
	for _, x := range list {
		if x != s {
			out = append(out, x)
		}
	}
	return out
}
