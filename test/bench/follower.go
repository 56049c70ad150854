package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/harness"
)

// follower notes when a node is given addresses, when it first says that it holds them, and when addresses leave
// another node.
type follower struct {
	target, victim        string
	mu                    sync.Mutex
	assigned, held, moved map[string]time.Time // by EgressIP
}

func newFollower(target, victim string) *follower {
	return &follower{target: target, victim: victim, assigned: map[string]time.Time{}, held: map[string]time.Time{},
		moved: map[string]time.Time{}}
}

func (f *follower) watch(ctx context.Context, c *cluster) error {
	if err := harness.WatchAll(ctx, c.Egret.EgressIP, "egressips", f.seeEgressIP); err != nil {
		return err
	}
	return harness.WatchAll(ctx, c.Egret.Egret, "egressnodes", f.seeEgressNode)
}

func (f *follower) seeEgressIP(e *v1.EgressIP, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := slices.ContainsFunc(e.Status.Items, func(i v1.EgressIPStatusItem) bool { return i.Node == f.target })
	if _, known := f.assigned[e.Name]; is && !known {
		f.assigned[e.Name] = now
	}
	if _, known := f.moved[e.Name]; !known && len(e.Status.Items) > 0 && e.Status.Items[0].Node != f.victim {
		f.moved[e.Name] = now
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

// left is when the last of the EgressIPs that were on the victim had a status that names another node.
func (f *follower) left(before map[string]string) (last time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, node := range before {
		if at := f.moved[name]; node == f.victim && at.IsZero() {
			err = fmt.Errorf("the status of EgressIP %s names node %s still", name, node)
		} else if node == f.victim {
			last = later(last, at)
		}
	}
	return last, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
