package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
)

// follower notes when a node is given addresses, and when it first says that it holds them.
type follower struct {
	target         string
	mu             sync.Mutex
	assigned, held map[string]time.Time // by EgressIP
}

func (f *follower) watch(ctx context.Context, c *cluster) error {
	if err := watchAll(ctx, c.egret.EgressIP, "egressips", f.seeEgressIP); err != nil {
		return err
	}
	return watchAll(ctx, c.egret.Egret, "egressnodes", f.seeEgressNode)
}

func (f *follower) seeEgressIP(e *v1.EgressIP, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := slices.ContainsFunc(e.Status.Items, func(i v1.EgressIPStatusItem) bool { return i.Node == f.target })
	if _, known := f.assigned[e.Name]; is && !known {
		f.assigned[e.Name] = now
	}
}

func (f *follower) seeEgressNode(n *egretv1.EgressNode, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.Name != f.target {
		return
	}
	for _, h := range n.Status.Holding {
		if _, known := f.held[h.EgressIP]; !known {
			f.held[h.EgressIP] = now
		}
	}
}

// times are when the last of these EgressIPs was given to the node, and when it said of the last that it holds it.
func (f *follower) times(names []string) (assigned, held time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(names) == 0 {
		return assigned, held, fmt.Errorf("node %s was given nothing", f.target)
	}
	for _, name := range names {
		a, h := f.assigned[name], f.held[name]
		if a.IsZero() || h.IsZero() {
			return assigned, held, fmt.Errorf("node %s does not hold EgressIP %s", f.target, name)
		}
		assigned, held = later(assigned, a), later(held, h)
	}
	return assigned, held, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
