package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/egret-net/egret/internal/controller"
	"github.com/egret-net/egret/internal/kube"
)

// leases are the agents' Leases in an API server.
type leases struct {
	mu      sync.Mutex
	version int
	dead    map[string]bool
	of      map[string]kube.AgentLease
	down    bool
}

func (l *leases) read(context.Context) (map[string]kube.AgentLease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errors.New("the API server is away")
	}
	out := map[string]kube.AgentLease{}
	for node, lease := range l.of {
		out[node] = lease
	}
	return out, nil
}

// renew has all agents that live renew their Leases every ten seconds.
func (l *leases) renew(ctx context.Context, nodes ...string) {
	for ; ctx.Err() == nil; sleep(ctx, 10*time.Second) {
		l.mu.Lock()
		for _, node := range nodes {
			if l.version++; !l.dead[node] && !l.down {
				l.of[node] = kube.AgentLease{Version: strconv.Itoa(l.version), Lasts: 40 * time.Second}
			}
		}
		l.mu.Unlock()
	}
}

func (l *leases) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// TestDeadAgentIsMissed: with nothing but Leases, a node whose agent is dead loses its address, people are told by the
// Node, and nothing moves back when the agent is there again. An API server that is away moves nothing.
func TestDeadAgentIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, c, _, _ := oneAssigned(t, time.Millisecond, "n1", "n2", "n3")
		for _, node := range []string{"n1", "n2", "n3"} {
			a.hold(node, map[string][]string{"e": {"172.18.0.33"}})
		}
		l := &leases{dead: map[string]bool{}, of: map[string]kube.AgentLease{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go l.renew(ctx, "n1", "n2", "n3")
		go controller.FollowAgents(ctx, l.read, c.AgentFound, slog.New(slog.DiscardHandler))
		time.Sleep(time.Minute)
		l.set(func() { l.down = true })
		time.Sleep(10 * time.Minute)
		l.set(func() { l.down = false })
		time.Sleep(2*time.Minute + 5*time.Second) // in the middle between two renewals
		told := a.reasons("n1") + a.reasons("n2") + a.reasons("n3")
		if have := a.assigned("e"); told != "" || have != "n1=172.18.0.33" {
			t.Errorf("after an outage of the API server: told of %q, assigned %s", told, have)
		}
		l.set(func() { l.dead["n1"] = true })
		time.Sleep(30 * time.Second)
		if have := a.assigned("e"); have != "n1=172.18.0.33" {
			t.Errorf("moved too early: %s", have)
		}
		time.Sleep(30 * time.Second)
		if have := a.assigned("e"); have != "n2=172.18.0.33" {
			t.Errorf("the agent of n1 is dead: assigned %s", have)
		}
		if have := a.reasons("n1"); have != "AgentAway" {
			t.Errorf("told of n1: %q", have)
		}
		if have := a.reasons("e"); have != "Assigned Moved" {
			t.Errorf("told of e: %q", have)
		}
		l.set(func() { l.dead["n1"] = false })
		time.Sleep(time.Minute)
		l.set(func() { l.dead["n2"] = true })
		time.Sleep(time.Minute)
		if have := a.assigned("e"); have != "n1=172.18.0.33" {
			t.Errorf("the agent of n1 is back, and that of n2 is dead: assigned %s", have)
		}
	})
}
