package kube

// internLimit bounds an interner: names that occur once would fill it otherwise.
const internLimit = 16 << 10

// interner makes equal strings the same: ten thousand pods have few different labels.
type interner struct{ known map[string]string }

func (i *interner) internString(s string) string {
	if old, is := i.known[s]; is {
		return old
	}
	if i.known == nil || len(i.known) >= internLimit {
		i.known = map[string]string{}
	}
	i.known[s] = s
	return s
}

func (i *interner) internLabels(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[i.internString(k)] = i.internString(v)
	}
	return out
}
