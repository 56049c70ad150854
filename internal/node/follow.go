package node

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/route"
)

// followSources feeds the loop.
func (a *Agent) followSources(ctx context.Context, o Options, t *targets, host <-chan route.Change) {
	go a.source.Run(ctx)
	go a.followCluster(ctx, t.disturbed)
	go a.publisher.reports.deliverUntilDone(ctx)
	go a.publisher.annotations.deliverUntilDone(ctx)
	go a.holding.runHolder(ctx, t.listener.Claims())
	go a.followTunnels(ctx, t.ovs)
	go route.AskGateways(ctx, a.config.Bridge, a.host.Gateways, a.log)
	restarts := ovs.VSwitchdRestarts(ctx, o.OVSRunDir, a.log)
	go a.host.FollowHost(ctx, host, func(c Change) { _ = a.loop.Turn(ctx, c) }) // its only error is that the agent ends
	go forEachSignal(ctx, restarts, a.loop.Reread)
	go forEachSignal(ctx, t.flow.Watch(ctx), a.loop.Wake)
	go forEachSignal(ctx, t.nft.Watch(ctx), func() {
		a.log.Warn("somebody else changed our nftables tables; they are read anew")
		t.disturbed()
		a.loop.Wake()
	})
	go a.firewall.followChanges(ctx, t.nft.ForeignChanges(), t.forward.Outdated, a.loop.Wake)
	for _, changed := range []<-chan struct{}{t.ovs.Changed(), t.nb.Changed(), t.sb.Changed()} {
		go forEachSignal(ctx, changed, a.loop.Wake)
	}
	for _, p := range t.pulses {
		go forEachSignal(ctx, p.Changed(), a.loop.Wake)
	}
	go forEachSignal(ctx, t.nb.LateConfirm(), a.loop.Confirmed)
	for _, again := range t.connections {
		go forEachSignal(ctx, again, func() { a.loop.Look(plan.InSources | plan.InDatagrams) })
	}
}

// followCluster brings the cluster into the loop, and tells it when it is whole. While no agent ran, somebody may have
// taken rules away: disturbed is called once they are about to be whole again.
func (a *Agent) followCluster(ctx context.Context, disturbed func()) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for synced := look.C; ; {
		select {
		case <-ctx.Done():
			return
		case c := <-a.source.Changes():
			if a.loop.Offer(ctx, Change(c)) != nil {
				return
			}
		case <-synced:
			if a.source.Synced() {
				disturbed()
				a.beginActing()
				synced = nil
			}
		}
	}
}
