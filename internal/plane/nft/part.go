package nft

import (
	"slices"

	"github.com/egret-net/egret/internal/plan"
)

// part is which rows of a plan may differ from what our tables hold; the zero part is any.
type part struct {
	chains plan.Changes[plan.NFTChain]
	rules  plan.Changes[plan.NFTRule]
	sets   plan.Changes[plan.NFTSet]
	elems  plan.Changes[plan.NFTElem]
}

// isKnown says that rows beyond those of the part do not differ.
func (p part) isKnown() bool { return p.chains.Known && p.rules.Known && p.sets.Known && p.elems.Known }

// withParents has each row once, and with each rule its chain, with each element its set.
func (p part) withParents() part {
	if !p.isKnown() {
		return part{}
	}
	chains, sets := slices.Clone(p.chains.Keys), slices.Clone(p.sets.Keys)
	for _, k := range p.rules.Keys {
		chains = append(chains, k.Chain)
	}
	for _, k := range p.elems.Keys {
		sets = append(sets, plan.NFTSet{Name: k.Set})
	}
	p.chains.Keys, p.sets.Keys = chains, sets
	return part{p.chains.Once(), p.rules.Once(), p.sets.Once(), p.elems.Once()}
}

// losesObjects says that the plan no longer has a chain or a set: their other rows must be refused.
func (p part) losesObjects(s *plan.State) bool {
	return slices.ContainsFunc(p.chains.Keys, func(k plan.NFTChain) bool { _, ok := s.NFTChains[k]; return !ok }) ||
		slices.ContainsFunc(p.sets.Keys, func(k plan.NFTSet) bool { _, ok := s.NFTSets[k]; return !ok })
}

// follower knows up to which moment of a plan's life a table holds it.
type follower struct {
	chains plan.Follower[plan.NFTChain]
	rules  plan.Follower[plan.NFTRule]
	sets   plan.Follower[plan.NFTSet]
	elems  plan.Follower[plan.NFTElem]
}

func newFollower() follower {
	return follower{
		plan.Follow[plan.NFTChain](plan.InNFTChains), plan.Follow[plan.NFTRule](plan.InNFTRules),
		plan.Follow[plan.NFTSet](plan.InNFTSets), plan.Follow[plan.NFTElem](plan.InNFTElems),
	}
}

// takePart is as plan.Follower's, of all tables: until done, the next one is everything.
func (f *follower) takePart(s *plan.State) part {
	return part{f.chains.Take(s), f.rules.Take(s), f.sets.Take(s), f.elems.Take(s)}
}

func (f *follower) forgetElems() { f.elems.Forget() }

func (f *follower) markDone(s *plan.State) {
	f.chains.Done(s)
	f.rules.Done(s)
	f.sets.Done(s)
	f.elems.Done(s)
}
