package plan

import (
	"iter"
	"slices"
	"strings"
)

// part is what one owner claims on behalf of another: of all the pods of an EgressIP each claims its policy, so that the last that goes
// takes it away, but a policy that a target refuses is no matter of a pod.
type part struct {
	owner string
	rows  *Rows
}

// For are the rows of r that are claimed on behalf of owner, which is named when a target refuses one of them.
func (r *Rows) For(owner string) *Rows {
	if p := r.part(owner); p != nil {
		return p
	}
	p := part{owner, &Rows{}}
	r.parts = append(r.parts, p)
	return p.rows
}

// OnBehalf yields what is claimed on behalf of others, by owner.
func (r *Rows) OnBehalf() iter.Seq2[string, *Rows] {
	return func(yield func(string, *Rows) bool) {
		for _, p := range r.parts {
			if !yield(p.owner, p.rows) {
				return
			}
		}
	}
}

func (r *Rows) part(owner string) *Rows {
	if i := slices.IndexFunc(r.parts, func(p part) bool { return p.owner == owner }); i >= 0 {
		return r.parts[i].rows
	}
	return nil
}

func (s *State) replaceParts(owner string, old, new *Rows) {
	for _, p := range old.parts {
		now := new.part(p.owner)
		if now == nil {
			now = &Rows{}
		}
		s.Replace(onBehalf(p.owner, owner), p.rows, now)
	}
	for _, p := range new.parts {
		if old.part(p.owner) == nil {
			s.Replace(onBehalf(p.owner, owner), &Rows{}, p.rows)
		}
	}
}

// behalf stands between an owner and who claims for it. No name of Kubernetes has it.
const behalf = " by "

func onBehalf(owner, claimer string) string { return owner + behalf + claimer }

// answers is the owner of a claim, without who made it.
func answers(claimer string) string {
	owner, _, _ := strings.Cut(claimer, behalf)
	return owner
}
