package nft

import "github.com/egret-net/egret/internal/plan"

// aliases are the keys of a plan that nft spells otherwise, by its spelling: several of them may be one element of the
// kernel's, which stays as long as one of them is wanted.
type aliases map[plan.NFTElem]map[plan.NFTElem]plan.None

func spelledElem(k plan.NFTElem) plan.NFTElem { return plan.NFTElem{Set: k.Set, Key: spellKey(k.Key)} }

func (a aliases) noteKey(k, spelled plan.NFTElem) {
	if k == spelled {
		return
	}
	if a[spelled] == nil {
		a[spelled] = map[plan.NFTElem]plan.None{}
	}
	a[spelled][k] = plan.None{}
}

// isWanted says whether s wants a spelled element by whichever key, and forgets keys that it does not have any more.
func (a aliases) isWanted(s *plan.State, spelled plan.NFTElem) bool {
	for k := range a[spelled] {
		if _, wanted := s.NFTElems[k]; !wanted {
			delete(a[spelled], k)
		}
	}
	if len(a[spelled]) == 0 {
		delete(a, spelled)
	}
	_, wanted := s.NFTElems[spelled]
	return wanted || len(a[spelled]) > 0
}
