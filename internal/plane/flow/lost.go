package flow

import (
	"context"
	"time"

	"github.com/egret-net/egret/internal/plane"
)

// countEvery is how often Watch counts. A switch tells of deletions only to those who hear of each flow that is learnt
// and renewed, too (ovs-ofctl(8), monitor).
const countEvery = 10 * time.Second

// Watch signals, until ctx ends, when a bridge has fewer flows of ours than it was given: somebody else has deleted
// some. The next Grow writes all of that bridge's.
func (p *Plane) Watch(ctx context.Context) <-chan struct{} {
	lost := make(chan struct{}, 1)
	go func() {
		look := time.NewTicker(countEvery)
		defer look.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-look.C:
				if p.hasLostFlows(ctx) {
					plane.SignalOnce(lost)
				}
			}
		}
	}()
	return lost
}

// given is how many flows a bridge was given, in its newest generation. Those that end by themselves do not count: one
// of them may hide that another flow has gone.
type given struct {
	generation uint32
	flows      int
}

// hasLostFlows says whether any bridge has fewer flows than it was given, and forgets such ones. The plane is not held
// up meanwhile: a bridge that it has changed by then, or that does not answer, is left for the next time.
func (p *Plane) hasLostFlows(ctx context.Context) bool {
	p.mu.Lock()
	all := p.completeBridges()
	p.mu.Unlock()
	found := false
	for name, g := range all {
		n, err := p.switches.countFlows(ctx, name, generationCookie(g.generation)+"/-1")
		if err == nil && n < g.flows && p.forgetUnchanged(name, g) {
			p.log.Warn("somebody else has deleted flows of ours; they are written anew", "bridge", name,
				"flows", g.flows, "left", n)
			found = true
		}
	}
	return found
}

// completeBridges are the bridges that have all their flows. The caller holds p.mu.
func (p *Plane) completeBridges() map[string]given {
	all := map[string]given{}
	for name, b := range p.bridges {
		if b.inPlace {
			all[name] = given{generation: b.newestGeneration()}
		}
	}
	for f := range p.held {
		if g, is := all[f.Bridge]; is && !expiresItself(f) {
			g.flows++
			all[f.Bridge] = g
		}
	}
	return all
}

// forgetUnchanged forgets a bridge if it has been given nothing else since.
func (p *Plane) forgetUnchanged(name string, then given) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	unchanged := p.completeBridges()[name] == then
	if unchanged {
		p.forgetBridge(name)
	}
	return unchanged
}
