package route

import (
	"context"
	"fmt"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// early is the plane before the cluster is known: no other row can be judged then.
type early struct{ *Plane }

// EarlyPlane returns a plane that removes released addresses of ours when it is grown.
func (p *Plane) EarlyPlane() plane.Plane { return early{p} }

func (p early) Grow(_ context.Context, want *plan.State) error {
	if len(want.ReleasedAddrs) == 0 {
		return nil
	}
	have, err := p.heldAddrs()
	if err != nil {
		return err
	}
	for k, h := range have {
		if _, is := want.ReleasedAddrs[k.Prefix.Addr()]; is && h.ours && k.Prefix.IsSingleIP() {
			if err := p.stack.delAddr(k); err != nil {
				return fmt.Errorf("delete %s: %w", addrRow(k), err)
			}
		}
	}
	return nil
}
