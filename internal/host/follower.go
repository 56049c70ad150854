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

// settleTime bounds how long ovs-vswitchd may take to change the bridge before it is asked again.
const settleTime = 5 * time.Second

// followUplink does to the gateway bridge what happens to its uplink. A hardware address that has become another, as a
// bond's does (fail_over_mac), becomes the bridge's: the flows and the gateway router have it by then, and what the
// host sends, and answers to ARP and ND, must come from it, too. Addresses and routes that the uplink has been given
// again, as a DHCP client does when it renews a lease, are taken off: the host would send by a port of the bridge, past
// its flows.
func (f *Follower) followUplink(ctx context.Context, h route.Host) error {
	mac, stale := bridgeAddress(h, f.Config)
	again := givenAgain(h, f.Config)
	if !stale && !again {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if stale {
		f.Log.Info("the uplink has another hardware address; the bridge takes it over", "address", mac)
	}
	if again {
		f.Log.Warn("somebody has given the uplink addresses or routes of the bridge again; they are taken off: have "+
			"what manages it leave it alone", "uplink", f.Config.UplinkInterface, "bridge", f.Config.Bridge)
	}
	return f.FollowUplink(ctx, ovs.Uplink{Bridge: f.Config.Bridge, Device: f.Config.UplinkInterface})
}

// tellNeighbours has the host's addresses on the bridge announced, those that are new or have another hardware address
// than before. The kernel does not, and other nodes would send what goes by tunnels to the former one until they ask
// again, as clients of an address that floats between hosts would. An agent's first time is of all: while none ran,
// nobody has told what happened. An egress IP that a former agent left is not the host's, nor is what another machine
// may have. Until the bridge has its uplink's address there is nothing to tell.
func (f *Follower) tellNeighbours(h route.Host) {
	var own []plan.Announcement
	_, stale := bridgeAddress(h, f.Config)
	if bridge, _ := h.Link(f.Config.Bridge); !stale {
		for _, x := range h.Addrs {
			if x.Dev == f.Config.Bridge && !x.Prefix.Addr().IsLinkLocalUnicast() && !x.Ours && !x.Tentative {
				own = append(own, plan.Announcement{Dev: f.Config.Bridge, IP: x.Prefix.Addr(), MAC: bridge.MAC})
			}
		}
	}
	f.Tell(own)
}
