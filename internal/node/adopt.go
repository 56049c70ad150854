package node

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plane/nft"
	"github.com/egret-net/egret/internal/plane/ovn"
	"github.com/egret-net/egret/internal/plane/route"
	"github.com/egret-net/egret/internal/world"
)

// adoptFormer takes in what a former process left: this host's facts, and the pods that are attached. After a boot
// their ports are in the database and their interfaces are not; those are swept.
func (a *Agent) adoptFormer(ctx context.Context, filter formerFilter) error {
	if err := a.cni.Sweep(ctx); err != nil {
		a.log.Warn("could not sweep ports of pods that are gone", "error", err)
	}
	if err := a.cni.Seal(ctx); err != nil {
		a.log.Warn("pods may reach this node past OVN", "error", err)
	}
	if err := a.host.ReadHost(ctx, route.Change{}, a.loop.Do); err != nil {
		a.log.Warn("could not take in this host's addresses", "error", err)
	}
	var ports []cniserver.PodPort
	failed := func(err error) { a.log.Warn("could not read the pods' ports; trying again", "error", err) }
	err := retryUntilDone(ctx, failed, func(ctx context.Context) (err error) {
		ports, err = cniserver.FromOVS(a.ovs).PodPorts(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the pods' ports: %w", err)
	}
	for _, p := range ports {
		if p.Problem != "" {
			a.log.Error("a pod lacks an address", "namespace", p.Namespace, "pod", p.Name, "problem", p.Problem)
		}
		if len(p.IPs) == 0 {
			continue // without an address that its port may send from, it could send from any
		}
		at := filter.adoptAttachment(*attachmentOf(p))
		a.loop.Do(func(w *world.World) { w.SetAttachment(at) })
	}
	return nil
}

// adoptHeld has the holder look after what a former process announced, which OVN and the kernel go on answering for.
func (a *Agent) adoptHeld(ctx context.Context, nb *ovn.Plane, rules *nft.Plane) {
	rows, err := nb.Ours(ctx, "NAT")
	if err != nil {
		a.log.Warn("could not read which egress IPs OVN answers for", "error", err)
	}
	sets, err := rules.Sets(ctx, func(name string) bool { _, is := egressip.AdoptedOnLink(name); return is })
	if err != nil {
		a.log.Warn("could not read which egress IPs the kernel answers for", "error", err)
	}
	a.loop.Do(func(w *world.World) {
		if h := w.Host(); h != nil {
			a.holding.adoptRows(rows, slices.Collect(maps.Keys(sets)), a.config.Bridge, h)
		}
	})
}
