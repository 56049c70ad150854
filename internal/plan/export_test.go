package plan

// Losers are the owners whose claims to k do not stand, in order.
func (t Table[K, V]) Losers(k K) []Owner {
	var lost []Owner
	for i, c := range t[k] {
		if i > 0 {
			lost = append(lost, c.by.owner)
		}
	}
	return lost
}
