package node

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/egret-net/egret/internal/metrics"
	"github.com/egret-net/egret/internal/plane/pulse"
	"github.com/egret-net/egret/internal/world"
)

// startup is how far the start of this process is. Any goroutine may use it.
type startup struct {
	mu       sync.Mutex
	waitsFor string         // the step before the loop; "": the loop goes round
	pulses   []*pulse.Pulse // of the processes that this node depends on, once they are known
	attaches bool           // the runtime finds the CNI configuration
}

func (s *startup) noteStep(change func(*startup)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *startup) copyState() (waitsFor string, pulses []*pulse.Pulse, attaches bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waitsFor, s.pulses, s.attaches
}

// currentHealth answers /healthz and /readyz. An agent whose loop has not begun waits for others: a restart would not
// help.
func (a *Agent) currentHealth(ctx context.Context) metrics.Health {
	h := metrics.Health{Alive: true, Missing: a.missingParts(), Problems: a.silentProblems()}
	if waitsFor, _, _ := a.startup.copyState(); waitsFor == "" {
		short, cancel := context.WithTimeout(ctx, healthWait)
		defer cancel()
		h.Alive = a.loop.Ask(short, func(*world.World) {}) == nil
	}
	return h
}

// missingParts returns what this process has not done since it began, a line each. A part that was done once counts for
// good. A process that falls silent later is a problem of the node, and not of the agent.
func (a *Agent) missingParts() (lines []string) {
	waitsFor, pulses, attaches := a.startup.copyState()
	if waitsFor != "" {
		lines = append(lines, "start: "+waitsFor)
	} else {
		lines = a.missingOfLoop()
	}
	if !attaches {
		lines = append(lines, "CNI: the runtime does not find Egret's network yet, and pods cannot be attached")
	}
	for _, p := range pulses {
		if text := p.NotMetProblem(); text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

func (a *Agent) missingOfLoop() (lines []string) {
	if unlisted := a.source.ListsMissing(); len(unlisted) > 0 {
		lines = append(lines, fmt.Sprintf("cluster: these lists are not read yet: %s: is the API server reached?",
			strings.Join(unlisted, ", ")))
	}
	if text := a.missingOfPlan(); text != "" {
		lines = append(lines, "plan: "+text)
	}
	return lines
}

// silentProblems are the processes that do not answer, as problems.
func (a *Agent) silentProblems() (out []string) {
	_, pulses, _ := a.startup.copyState()
	for _, p := range pulses {
		if text := p.Problem(); text != "" {
			out = append(out, text)
		}
	}
	return out
}
