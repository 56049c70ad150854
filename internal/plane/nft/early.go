package nft

import (
	"context"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// early is the plane before the cluster is known. The plan does not yet have all rows then.
type early struct{ *Plane }

// EarlyPlane returns a plane that removes no element when it is grown.
func (p *Plane) EarlyPlane() plane.Plane { return early{p} }

// Grow adds and changes rows. The next Grow of the plane itself compares all elements: it may have some to remove.
func (p early) Grow(ctx context.Context, want *plan.State) error {
	p.inet.early = true
	err := p.Plane.Grow(ctx, want)
	p.inet.early = false
	p.inet.grown.forgetElems()
	return err
}
