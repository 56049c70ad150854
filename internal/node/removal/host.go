package removal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/egret-net/egret/internal/node/cniserver/podlink"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/forward"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/pulse"
	"github.com/egret-net/egret/internal/plane/route"
)

// switches are Open vSwitch's database.
type switches interface {
	RemoveBridges(ctx context.Context, uplink string, names ...string) error
	AwaitSwitchd(ctx context.Context) error
}

// host is what a node holds of Egret's, but for files.
type host struct {
	uplink       ovs.Uplink
	switches     switches    // nil: the database does not answer
	settings     plane.Plane // in that database
	vswitchd     bool        // it runs
	ovsIsOurs    bool        // the database's files are deleted if nobody reads them
	routes       plane.Plane // addresses, routes and rules of the kernel
	rules        plane.Plane // nftables
	accepts      plane.Plane // rules in the host's own chains
	podLinks     func() (int, error)
	returnUplink func() error
	// deleteLinks does what ovs-vswitchd does for bridges that are gone.
	deleteLinks    func(ctx context.Context) error
	restoreSysctls func() error
}

func openHost(ctx context.Context, o Options) (*host, error) {
	routes, err := route.New(route.Options{FormerSysctls: o.FormerSysctls()})
	if err != nil {
		return nil, err
	}
	rules, err := nft.Open()
	if err != nil {
		return nil, err
	}
	u := ovs.Uplink{Bridge: o.Config.Bridge, Device: o.Config.UplinkInterface}
	h := &host{
		uplink: u, routes: routes, rules: rules, accepts: forward.New(forward.Commands{}),
		ovsIsOurs: o.OVSState != "",
		vswitchd:  isAnswered(ctx, pulse.Daemon(o.OVSRunDir, "ovs-vswitchd")), podLinks: podlink.DeleteAll,
		returnUplink:   func() error { return ovs.ReturnUplink(u) },
		restoreSysctls: routes.RestoreSysctls,
		deleteLinks: func(ctx context.Context) error {
			return ovs.DeleteLinks(ctx, "ovs-dpctl", u.Device, plan.IntegrationBridge, plan.LivenessBridge, u.Bridge,
				plan.DefaultNames().ManagementPort(), "ovs-netdev")
		},
	}
	if endpoint := "unix:" + o.OVSRunDir + "/db.sock"; isAnswered(ctx, pulse.Database(endpoint)) {
		db, err := ovs.Connect(ctx, endpoint, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		h.switches, h.settings = db, ovs.NewPlane(db)
	}
	return h, nil
}

// errNoDatabase says what to do if ovsdb-server is dead and its files are the host's own.
var errNoDatabase = errors.New("the database of Open vSwitch does not answer, and has Egret's bridges and settings " +
	"still: start ovsdb-server, and run this again")

// removeNetwork gives the host its own network. First pods lose theirs: without our rules their packets would leave
// with wrong addresses. The uplink moves when no rule of ours drops what the kernel receives by it, and the bridge goes
// when nothing needs it. After an error the uplink may be on its bridge; left says what is there still although it is
// not.
func (h *host) removeNetwork(ctx context.Context, log *slog.Logger) (left, err error) {
	pods, err := h.podLinks()
	if err != nil {
		return nil, err
	}
	log.Info("no pod has a link any more", "deleted", pods)
	kept := []error{h.removeBridges(ctx, plan.IntegrationBridge, plan.LivenessBridge)}
	if err := errors.Join(h.routes.Shrink(ctx, plan.New()), h.rules.Shrink(ctx, plan.New())); err != nil {
		return nil, fmt.Errorf("the uplink stays on its bridge, run this again: %w", errors.Join(append(kept, err)...))
	}
	if err := h.returnUplink(); err != nil {
		return nil, fmt.Errorf("give %s its addresses and routes back: %w", h.uplink.Device, err)
	}
	kept = append(kept, h.removeBridges(ctx, h.uplink.Bridge))
	if h.switches == nil || !h.vswitchd {
		kept = append(kept, h.deleteLinks(ctx))
	}
	kept = append(kept, h.accepts.Shrink(ctx, plan.New()), h.removeSettings(ctx), h.restoreSysctls())
	return errors.Join(kept...), nil
}

func (h *host) removeBridges(ctx context.Context, names ...string) error {
	if h.switches == nil {
		return nil
	}
	err := h.switches.RemoveBridges(ctx, h.uplink.Device, names...)
	if h.vswitchd {
		err = errors.Join(err, h.switches.AwaitSwitchd(ctx))
	}
	return err
}

func (h *host) removeSettings(ctx context.Context) error {
	switch {
	case h.switches != nil:
		return h.settings.Shrink(ctx, plan.New())
	case h.ovsIsOurs && !h.vswitchd:
		return nil
	}
	return errNoDatabase
}
