package node

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/forward"
)

// firewall is what others' nftables rules do to packets that the host forwards for pods.
type firewall struct {
	log   *slog.Logger
	pause time.Duration // between two looks

	mu    sync.Mutex
	drops []string
}

func newFirewall(log *slog.Logger) *firewall { return &firewall{log: log, pause: time.Second} }

// problems are the chains that drop them, a sentence each.
func (f *firewall) problems() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drops
}

// follow looks at once, and whenever others have changed their rules, then also at iptables' FORWARD: outdated has our
// rules there looked for, and wake begins a round.
func (f *firewall) follow(ctx context.Context, others <-chan struct{}, outdated, wake func()) {
	for {
		if f.look(ctx) {
			wake()
		}
		select { // who changes rules all the time is followed at a pace
		case <-ctx.Done():
			return
		case <-time.After(f.pause):
		}
		select {
		case <-ctx.Done():
			return
		case <-others:
			outdated()
			wake()
		}
	}
}

// look says whether there is something new.
func (f *firewall) look(ctx context.Context) bool {
	drops, err := forward.Dropping(ctx, plan.DefaultNames().ManagementPort())
	if err != nil {
		f.log.Warn("could not read which rules of others drop what this host forwards", "error", err)
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Equal(f.drops, drops) {
		return false
	}
	f.drops = drops
	return true
}
