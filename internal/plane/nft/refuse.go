package nft

import (
	"context"
	"slices"
	"sort"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// tryRun carries out b, or what can be carried out of it, by what dry runs say: one that fails has done nothing. It
// writes once: a transaction that fails may have been carried out, and a rule that is added again is there twice.
func (t *table) tryRun(ctx context.Context, b batch) ([]*plane.Refused, error) {
	if b.isEmpty() {
		return nil, nil
	}
	if failure := t.dryRun(ctx, b); failure != nil {
		return t.applyWithoutBad(ctx, b, failure)
	}
	return nil, t.runBatch(ctx, b)
}

// applyWithoutBad finds the owners that make a dry run of b fail, and carries out the rest.
func (t *table) applyWithoutBad(ctx context.Context, b batch, failure error) ([]*plane.Refused, error) {
	if t.dryRun(ctx, batch{rebuild: b.rebuild}) != nil {
		return nil, failure // not the rows' fault
	}
	good := map[plan.Owner]bool{}
	bad := t.siftGood(ctx, b, good)
	refused := make([]*plane.Refused, 0, len(bad))
	for _, owner := range bad {
		refused = append(refused, t.firstOffender(ctx, b, good, owner))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return refused, t.runBatch(ctx, b.ofOwners(func(owner plan.Owner) bool { return good[owner] }))
}

// siftGood finds the owners whose steps can be carried out together, and returns the others. It goes around again as
// long as that makes more owners good: one's rule may name another's set.
func (t *table) siftGood(ctx context.Context, b batch, good map[plan.Owner]bool) []plan.Owner {
	pending := b.stepOwners()
	for {
		bad := t.siftOwners(ctx, b, good, pending)
		if len(bad) == 0 || len(bad) == len(pending) || ctx.Err() != nil {
			return bad
		}
		pending = bad
	}
}

func (t *table) siftOwners(
	ctx context.Context, b batch, good map[plan.Owner]bool, owners []plan.Owner,
) (bad []plan.Owner) {
	err := t.dryRun(ctx, b.ofOwners(func(owner plan.Owner) bool {
		return good[owner] || slices.Contains(owners, owner)
	}))
	if err == nil {
		for _, owner := range owners {
			good[owner] = true
		}
		return nil
	}
	if len(owners) == 1 {
		return owners
	}
	half := len(owners) / 2
	return append(t.siftOwners(ctx, b, good, owners[:half]), t.siftOwners(ctx, b, good, owners[half:])...)
}

// firstOffender is the first of a bad owner's rows that is refused.
func (t *table) firstOffender(ctx context.Context, b batch, good map[plan.Owner]bool, owner plan.Owner) *plane.Refused {
	own := b.ofOwners(func(o plan.Owner) bool { return o == owner }).steps
	try := func(n int) error { return t.dryRun(ctx, b.onlyFirst(good, owner, n)) }
	i := sort.Search(len(own)-1, func(i int) bool { return try(i+1) != nil })
	return newRefusal(owner, own[i].row, try(i+1))
}

// onlyFirst is the batch of the good owners and the first n steps of another one.
func (b batch) onlyFirst(good map[plan.Owner]bool, owner plan.Owner, n int) batch {
	return b.ofOwners(func(o plan.Owner) bool {
		if o != owner {
			return good[o]
		}
		n--
		return n >= 0
	})
}

// dryRun is a dry run.
func (t *table) dryRun(ctx context.Context, b batch) error {
	return t.nft.Check(ctx, t.buildTransaction(b))
}
