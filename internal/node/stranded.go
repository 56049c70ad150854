package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/feature/egressip"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

const (
	// strandedTick is how often the agent looks whether its own pods are served by what it holds.
	strandedTick = time.Second
	// strandedFor is how long they may not be before that is a problem to tell of: longer than a move takes.
	strandedFor = 5 * time.Second
)

// stranded are addresses that this node announces and does not lead its own pods to. All of it belongs to the loop.
type stranded struct {
	log   *slog.Logger
	since map[Held]*plight
}

type plight struct {
	first time.Time
	why   string
	told  bool
}

// watchStranded looks round until ctx ends.
func (a *Agent) watchStranded(ctx context.Context) {
	tick := time.NewTicker(strandedTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			_ = a.loop.Ask(ctx, func(w *world.World) { a.stranded.look(w, a.guard.held, now) }) // its only error is that the agent ends
		}
	}
}

// look goes through what is announced, by address, to EgressIP.
func (s *stranded) look(w *world.World, announced map[netip.Addr]string, now time.Time) {
	found := map[Held]*plight{}
	for ip, name := range announced {
		why := egressip.Stranded(w, name, ip)
		if why == "" {
			continue
		}
		h := Held{name, ip}
		p := s.since[h]
		if p == nil {
			p = &plight{first: now}
		}
		if p.why = why; !p.told && now.Sub(p.first) >= strandedFor {
			p.told = true
			s.log.Warn("pods of this node are not served by an egress IP that it hosts itself", "egressIP", name, "ip", ip, "why", why)
		}
		found[h] = p
	}
	s.since = found
}

// problems are those that have lasted.
func (s *stranded) problems() []world.Problem {
	var out []world.Problem
	for h, p := range s.since {
		if p.told {
			out = append(out, world.Problem{
				Object: ref.Object{Kind: ref.EgressIP, Name: h.EgressIP}, Reason: world.ReasonNotSteered,
				Message: fmt.Sprintf("pods of this node do not get through to %s, which it hosts: %s", h.IP, p.why),
			})
		}
	}
	slices.SortFunc(out, world.Problem.Compare)
	return out
}
