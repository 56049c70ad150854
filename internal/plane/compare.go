package plane

import (
	"cmp"
	"context"

	"github.com/egret-net/egret/internal/plan"
)

// Difference is one row that a target lacks, or has otherwise (Missing), or that it has and nobody wants.
type Difference struct {
	Plane, Row, Owner string
	Missing           bool
}

// String is "missing: ROW (of OWNER)" or "unwanted: ROW", with the plane first.
func (d Difference) String() string {
	if !d.Missing {
		return d.Plane + " unwanted: " + d.Row
	}
	if d.Owner == "" {
		return d.Plane + " missing: " + d.Row
	}
	return d.Plane + " missing: " + d.Row + " (of " + d.Owner + ")"
}

// Compare orders differences by plane, then by row.
func (d Difference) Compare(o Difference) int {
	return cmp.Or(cmp.Compare(d.Plane, o.Plane), cmp.Compare(d.Row, o.Row), cmp.Compare(d.Owner, o.Owner))
}

// Comparer is a plane that can say how its target differs from a plan. It asks the target, and changes nothing there.
type Comparer interface {
	Compare(ctx context.Context, want *plan.State) ([]Difference, error)
}
