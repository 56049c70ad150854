package main

import (
	"context"
	"log/slog"

	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// standby is a controller that does not lead, and whose watches have brought all.
type standby struct{ source *kube.Source }

// startStandby starts one, which follows until ctx ends. Its connections count.
func (c *cluster) startStandby(ctx context.Context) error {
	clients, err := kube.NewClients(c.counter.count(c.config))
	if err != nil {
		return err
	}
	features := all.ServedKinds()
	source := kube.NewSource(clients, slog.New(slog.DiscardHandler), kube.Followed(features.AllResources()...)...)
	w := features.NewWorld("", &world.Config{})
	go source.Run(ctx)
	go func() {
		for {
			select {
			case change := <-source.Changes():
				change(w)
			case <-ctx.Done():
				return
			}
		}
	}()
	c.standby = standby{source}
	return c.standby.reads(ctx)
}

// reads is what a controller reads before it leads.
func (s standby) reads(ctx context.Context) error {
	for _, k := range controller.HolderKinds() {
		if err := s.source.ReadNow(ctx, k, ""); err != nil {
			return err
		}
	}
	return nil
}
