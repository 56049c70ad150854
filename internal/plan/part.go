package plan

import (
	"cmp"
	"iter"
	"slices"
)

// part is what one owner claims on behalf of another: of all the pods of an EgressIP each claims its policy, so that
// the last that goes takes it away, but a policy that a target refuses is no matter of a pod.
type part struct {
	owner Owner
	rows  *Rows
}

// For are the rows of r that are claimed on behalf of owner, which is named when a target refuses one of them.
func (r *Rows) For(owner Owner) *Rows {
	if p := r.partOf(owner); p != nil {
		return p
	}
	p := part{owner, &Rows{}}
	r.parts = append(r.parts, p)
	return p.rows
}

// OnBehalf yields what is claimed on behalf of others, by owner.
func (r *Rows) OnBehalf() iter.Seq2[Owner, *Rows] {
	return func(yield func(Owner, *Rows) bool) {
		for _, p := range r.parts {
			if !yield(p.owner, p.rows) {
				return
			}
		}
	}
}

func (r *Rows) partOf(owner Owner) *Rows {
	if i := slices.IndexFunc(r.parts, func(p part) bool { return p.owner == owner }); i >= 0 {
		return r.parts[i].rows
	}
	return nil
}

func (s *State) replaceParts(c *claimant, old, new *Rows) {
	by := cmp.Or(c.by, c.owner)
	for _, p := range old.parts {
		now := new.partOf(p.owner)
		if now == nil {
			now = &Rows{}
		}
		s.replaceRowsOf(&claimant{p.owner, by}, p.rows, now)
	}
	for _, p := range new.parts {
		if old.partOf(p.owner) == nil {
			s.replaceRowsOf(&claimant{p.owner, by}, &Rows{}, p.rows)
		}
	}
}
