package node

import (
	"context"
	"net/netip"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/plane/route"
)

// followSources feeds the loop.
func (a *Agent) followSources(ctx context.Context, o Options, t *targets, host <-chan route.Change) {
	go a.source.Run(ctx)
	go a.followCluster(ctx, t.disturbed)
	go a.reports.deliverUntilDone(ctx)
	go a.annotations.deliverUntilDone(ctx)
	go a.holding.runHolder(ctx, t.listener.Claims())
	go a.followTunnels(ctx, t.ovs)
	go route.AskGateways(ctx, a.config.Bridge, func() []netip.Addr { return *a.gateways.Load() }, a.log)
	restarts := ovs.VSwitchdRestarts(ctx, o.OVSRunDir, a.log)
	inTurn := func(c Change) { _ = a.loop.Turn(ctx, c) } // its only error is that the agent ends
	go a.followHost(ctx, host, inTurn)
	go forEachSignal(ctx, restarts, a.loop.Reread)
	go forEachSignal(ctx, t.flow.Watch(ctx), a.loop.Wake)
	go forEachSignal(ctx, t.nft.Watch(ctx), func() {
		a.log.Warn("somebody else changed our nftables tables; they are read anew")
		t.disturbed()
		a.loop.Wake()
	})
	go a.firewall.followChanges(ctx, t.nft.Others(), t.forward.Outdated, a.loop.Wake)
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

// hostRetry is when the host is looked at again after something about it could not be done.
const hostRetry = time.Second

// followHost reads the host again when the kernel, or a file with names of routing tables, reports a change. Without
// such telling, names are read with the next change of the kernel.
func (a *Agent) followHost(ctx context.Context, host <-chan route.Change, do func(Change)) {
	names, err := route.WatchNames(ctx, a.hostRoot)
	if err != nil {
		a.log.Warn("changed names of routing tables may not be seen at once", "error", err)
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
		if err := a.readHost(ctx, changed, do); err != nil {
			a.log.Warn("could not take in this host's addresses; trying again", "error", err)
			retry = time.After(hostRetry)
			continue
		}
		changed = route.Change{}
	}
}

func forEachSignal(ctx context.Context, signal <-chan struct{}, f func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-signal:
			if !open {
				return
			}
			f()
		}
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
