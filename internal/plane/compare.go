package plane

import (
	"cmp"
	"context"

	"github.com/egret-net/egret/internal/plan"
)

// Difference is one row that a target lacks, or has otherwise (Missing), or that it has and nobody wants. The latter
// has no owner: a target does not tell for whom a row was.
type Difference struct {
	Plane, Row string
	Owner      plan.Owner // zero of a row that nobody wants
	Missing    bool
}

// String is "missing: ROW (of OWNER)" or "unwanted: ROW", with the plane first.
func (d Difference) String() string {
	if !d.Missing {
		return d.Plane + " unwanted: " + d.Row
	}
	if d.Owner == (plan.Owner{}) {
		return d.Plane + " missing: " + d.Row
	}
	return d.Plane + " missing: " + d.Row + " (of " + d.Owner.String() + ")"
}

// Compare orders differences by plane, then by row.
func (d Difference) Compare(o Difference) int {
	return cmp.Or(cmp.Compare(d.Plane, o.Plane), cmp.Compare(d.Row, o.Row), d.Owner.Compare(o.Owner))
}

// Comparer is a plane that can say how its target differs from a plan. It asks the target, and changes nothing there.
// It is asked beside the loop, which applies the plane meanwhile: it holds nothing that this needs.
type Comparer interface {
	Name() string
	Compare(ctx context.Context, want *plan.State) ([]Difference, error)
}
