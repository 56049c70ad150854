package oracle

import (
	"context"
	"log/slog"
	"time"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// Follow returns an oracle that has seen all objects of the API, and sees their changes until ctx ends.
func Follow(ctx context.Context, clients *kube.Clients) (*Oracle, error) {
	subnets, err := world.ParseClusterSubnets("10.244.0.0/16/24,fd00:10:244::/48/64") // those of sandboxes
	if err != nil {
		return nil, err
	}
	o := New(&world.Config{ClusterSubnets: subnets})
	source := kube.NewSource(clients, slog.New(slog.DiscardHandler), kube.Nodes(), kube.Namespaces(), kube.Pods(),
		kube.Services(), kube.EndpointSlices(), kube.EgressIPs(), kube.EgressIPTraffics(), kube.EgressServices(),
		kube.NetworkDefinitions())
	go source.Run(ctx)
	for !source.Synced() {
		if err := o.next(ctx, source); err != nil {
			return nil, err
		}
	}
	go func() {
		for o.next(ctx, source) == nil {
		}
	}()
	return o, nil
}

// next takes one change in.
func (o *Oracle) next(ctx context.Context, source *kube.Source) error {
	select {
	case change := <-source.Changes():
		o.Apply(time.Now(), change)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
