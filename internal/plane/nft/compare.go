package nft

import (
	"context"
	"fmt"

	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

var _ plane.Comparer = (*Plane)(nil)

// Compare implements plane.Comparer: it lists the tables again, and remembers nothing of the listing.
func (p *Plane) Compare(ctx context.Context, want *plan.State) ([]plane.Difference, error) {
	var out []plane.Difference
	for _, t := range []*table{p.inet, p.netdev} {
		differences, err := newTable(t.nft, knftables.Family(t.family), t.device).compareTable(ctx, want)
		if err != nil {
			return nil, fmt.Errorf("read the nftables table %s %s: %w", t.family, TableName, err)
		}
		out = append(out, differences...)
	}
	return out, nil
}

func (t *table) compareTable(ctx context.Context, want *plan.State) ([]plane.Difference, error) {
	h, err := readTable(ctx, t.nft)
	if err != nil {
		return nil, err
	}
	w := t.wantedOf(want, part{})
	var out []plane.Difference
	for _, s := range growBatch(w, h, false).steps {
		out = append(out, plane.Difference{Plane: planeName, Row: s.row, Owner: s.owner, Missing: true})
	}
	for _, s := range shrinkBatch(w, h, false).steps {
		out = append(out, plane.Difference{Plane: planeName, Row: s.row})
	}
	return out, nil
}
