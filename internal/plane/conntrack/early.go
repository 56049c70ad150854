package conntrack

import (
	"context"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

type early struct{ *Plane }

// Early is a plane that ends p's connections when it is grown: after those planes that have the rules for their
// successors, and without waiting for all others to grow. No other plane waits for it. If it fails, p ends the rest
// when it is shrunk, and returns the error.
func (p *Plane) Early() plane.Plane { return early{p} }

func (p early) Name() string { return p.Plane.Name() + "-early" }

func (p early) Grow(ctx context.Context, want *plan.State) error {
	if err := p.Plane.Shrink(ctx, want); err != nil {
		p.log.Debug("connections with a former source are left for later", "error", err)
	}
	return nil
}

func (p early) Shrink(context.Context, *plan.State) error { return nil }
