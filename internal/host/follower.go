package host

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// Follower brings what the host is into the world.
type Follower struct {
	Config *world.Config
	Log    *slog.Logger
	// Root is where the host's /etc and /usr are.
	Root string
	// Know receives the host's own addresses before the world does.
	Know func([]netip.Addr)
	// Tell receives the node's own addresses, to announce those that are new.
	Tell func([]plan.Announcement)
	// Wake asks for a look at the targets.
	Wake func()
	// FollowUplink gives the gateway bridge what its uplink has.
	FollowUplink func(context.Context, ovs.Uplink) error

	gateways atomic.Pointer[[]netip.Addr] // as last read
	ours     []string                     // our rows on this host, as last read
}

// Gateways are the host's own.
func (f *Follower) Gateways() []netip.Addr {
	if known := f.gateways.Load(); known != nil {
		return *known
	}
	return nil
}

// ReadHost has do bring into the world what the host is now. It asks for a look at the targets where our rows are not
// those of the last time, which somebody may have done.
func (f *Follower) ReadHost(ctx context.Context, changed route.Change, do func(func(*world.World))) error {
	h, err := route.ReadHost(ctx)
	if err != nil {
		return fmt.Errorf("read the host's links and addresses: %w", err)
	}
	if facts := Facts(h, f.Config, route.TableNames(f.Root)); facts != nil {
		f.Know(facts.Addrs)
		f.gateways.Store(&facts.Gateways)
		do(func(w *world.World) { w.SetHost(facts) })
		f.tellNeighbours(h)
	}
	if changed.Taken || !slices.Equal(h.Ours, f.ours) {
		f.ours = h.Ours
		f.Wake()
	}
	return f.followUplink(ctx, h)
}

// retryPause is when the host is read again after something about it could not be done.
const retryPause = time.Second

// FollowHost reads the host again when the kernel, or a file with names of routing tables, reports a change. Without
// such reports, names are read with the next change of the kernel.
func (f *Follower) FollowHost(ctx context.Context, host <-chan route.Change, do func(func(*world.World))) {
	names, err := route.WatchNames(ctx, f.Root)
	if err != nil {
		f.Log.Warn("changed names of routing tables may not be seen at once", "error", err)
	}
	retry := time.After(0)   // changes after the host was read and before this
	var changed route.Change // since the host was last taken in
	for {
		select {
		case <-ctx.Done():
			return
		case c, open := <-host:
			if !open {
				return
			}
			changed.Taken = changed.Taken || c.Taken
		case _, open := <-names:
			if !open {
				return
			}
		case <-retry:
		}
		retry = nil
		if err := f.ReadHost(ctx, changed, do); err != nil {
			f.Log.Warn("could not take in this host's addresses; trying again", "error", err)
			retry = time.After(retryPause)
			continue
		}
		changed = route.Change{}
	}
}
