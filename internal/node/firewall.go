package node

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane/forward"
	"github.com/egret-net/egret/internal/world"
)

// firewall is what others' nftables rules do to packets that the host forwards for pods.
type firewall struct {
	log      *slog.Logger
	families []string      // of the cluster, as nftables calls them
	pause    time.Duration // between two looks

	mu    sync.Mutex
	drops []string
}

func newFirewall(families []world.Family, log *slog.Logger) *firewall {
	f := &firewall{log: log, pause: time.Second}
	for _, family := range families {
		f.families = append(f.families, map[world.Family]string{world.V4: "ip", world.V6: "ip6"}[family])
	}
	return f
}

// problemTexts are the chains that drop them, a sentence each.
func (f *firewall) problemTexts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.drops
}

// followChanges looks at once, and whenever others have changed their rules, then also at iptables' FORWARD: outdated
// has our rules there looked for, and wake begins a round. A look that failed, as when a table goes meanwhile, is tried
// again: nobody may tell of another change.
func (f *firewall) followChanges(ctx context.Context, others <-chan struct{}, outdated, wake func()) {
	for {
		news, err := f.lookForDrops(ctx)
		if news {
			wake()
		}
		var again <-chan time.Time
		if err != nil {
			f.log.Warn("could not read which rules of others drop what this host forwards; trying again", "error", err)
			again = time.After(retryPauses * f.pause)
		}
		select { // continuous changes of rules are followed at a bounded pace
		case <-ctx.Done():
			return
		case <-time.After(f.pause):
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-others:
			outdated()
			wake()
		}
	}
}

// retryPauses are those before a look that failed is tried again.
const retryPauses = 10

// lookForDrops says whether there is something new.
func (f *firewall) lookForDrops(ctx context.Context) (news bool, err error) {
	drops, err := forward.Dropping(ctx, plan.DefaultNames().ManagementPort(), f.families...)
	if err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	news = !slices.Equal(f.drops, drops)
	f.drops = drops
	return news, nil
}
