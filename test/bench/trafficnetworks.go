package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/egret-net/egret/test/harness"
)

const (
	// manyNetworks with one more is what one EgressIPTraffic can have.
	manyNetworks = 9999
	bulkName     = "bench-bulk"
	singleName   = "bench-single"
)

// trafficNetworks measures one EgressIP with 10,000 networks: what they cost the agents' memory, how long they take to
// load, and how long one more takes: in the same EgressIPTraffic, which everybody reads as a whole, and in another.
func trafficNetworks(ctx context.Context, l *lab) error {
	return l.withTraffic(ctx, 1, func(ctx context.Context, b *byNetwork) error {
		if err := b.CreateTraffic(ctx, singleName, trafficLabel, networks(1)); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		if err := b.reportAgents(ctx, l, "before"); err != nil {
			return err
		}
		if err := b.load(ctx, l); err != nil {
			return err
		}
		if err := b.reportAgents(ctx, l, "loaded"); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		for _, name := range []string{bulkName, singleName} {
			if err := b.oneMore(ctx, l, name); err != nil {
				return fmt.Errorf("one more in %s: %w", name, err)
			}
		}
		return b.reportAgents(ctx, l, "changed")
	})
}

// reportAgents tells what memory the agents have.
func (b *byNetwork) reportAgents(ctx context.Context, l *lab, when string) error {
	for _, node := range b.nodes() {
		pid, err := b.PidOf(ctx, node, "egret-node")
		if err != nil {
			return err
		}
		resident, peak, err := b.Resident(ctx, node, pid)
		if err != nil {
			return err
		}
		name := "traffic/networks/" + b.role(node) + "/" + when
		l.report(result{name: name + "/VmRSS", unit: "MiB", runs: sample{resident}})
		l.report(result{name: name + "/VmHWM", unit: "MiB", runs: sample{peak}})
	}
	return nil
}

func (b *byNetwork) role(node string) string {
	if node == b.host {
		return "host"
	}
	return "pod-node"
}

// load makes the many networks, and reports when all nodes have them.
func (b *byNetwork) load(ctx context.Context, l *lab) error {
	start := time.Now()
	if err := b.CreateTraffic(ctx, bulkName, trafficLabel, networks(manyNetworks)); err != nil {
		return err
	}
	var all time.Time
	for _, node := range b.nodes() {
		written, ready, err := b.zones[node].Change(ctx, start)
		if err != nil {
			return err
		}
		if err := b.hasNetworks(ctx, node); err != nil {
			return err
		}
		all = later(all, ready)
		l.say("traffic/networks: %s has them after %v, written after %v", b.role(node), ready.Sub(start),
			written.Sub(start))
	}
	var took sample
	took.addTime(all.Sub(start))
	l.report(result{name: "traffic/networks/loaded", unit: "ms", runs: took, base: b.higherFloor()})
	return nil
}

// hasNetworks fails where the first transaction after the request was not the one that wrote the networks. One of so
// many is written as two halves.
func (b *byNetwork) hasNetworks(ctx context.Context, node string) error {
	have, err := b.members(ctx, node, "egressip/bench-0/destinations.v4")
	if err == nil && have != manyNetworks+1 {
		err = fmt.Errorf("node %s has %d members, not %d", node, have, manyNetworks+1)
	}
	return err
}

// oneMore measures a network that comes, again and again, in one of the EgressIPTraffics.
func (b *byNetwork) oneMore(ctx context.Context, l *lab, object string) error {
	floor := b.higherFloor()
	_, err := l.repeat(experiment{"traffic/networks/one-more-in-" + strings.TrimPrefix(object, "bench-"), []result{
		{name: "answered", unit: "ms", base: floor},
		{name: "all-written", unit: "ms", base: floor},
		{name: "all-have-it", unit: "ms", base: floor, ratio: 5},
	}, func(i int, t tally) error {
		if err := b.addNetwork(ctx, object, i, t); err != nil {
			return err
		}
		// the first is the one that was added
		if err := b.PatchTraffic(ctx, object, `[{"op":"remove","path":"/spec/destinationNetworks/0"}]`); err != nil {
			return err
		}
		return harness.SleepUntil(ctx, time.Now().Add(2*time.Second))
	}})
	return err
}

// addNetwork is one run: when the API server has answered, and when the last node has it.
func (b *byNetwork) addNetwork(ctx context.Context, object string, i int, t tally) error {
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/destinationNetworks/0","value":%q}]`, network(passing, i))
	start := time.Now()
	if err := b.PatchTraffic(ctx, object, patch); err != nil {
		return err
	}
	answered := time.Now()
	var written, ready time.Time
	for _, node := range b.nodes() {
		w, r, err := b.zones[node].Change(ctx, start)
		if err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
		written, ready = later(written, w), later(ready, r)
	}
	t.addSince(start, map[string]time.Time{"answered": answered, "all-written": written, "all-have-it": ready})
	return nil
}
