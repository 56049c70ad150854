package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

// Surroundings replace clock, goroutines and I/O for a controller that its owner drives.
type Surroundings struct {
	Config *world.Config
	Source Source
	Writer Writer
	Self   string // the node that it runs on
	Prober Prober
	Now    func() time.Time
	// Later does something after a time; 0: a write that begins now.
	Later func(time.Duration, func())
}

// Steps drives a controller without goroutines, for simulations of many: its owner makes each step, and says what time
// it is. Events are not posted.
type Steps struct {
	c    *Controller
	stop context.CancelFunc
}

// NewSteps makes a controller that does not lead.
func NewSteps(s Surroundings) *Steps {
	c := New(s.Config, all.ServedKinds(), s.Source, s.Writer, NewMetrics(), slog.New(slog.DiscardHandler))
	c.now, c.later, c.reach.self, c.reach.prober = s.Now, s.Later, s.Self, s.Prober
	c.results = make(chan result, eventBacklog)
	return &Steps{c: c, stop: func() {}}
}

// Lead begins a term, and Resign ends it.
func (s *Steps) Lead() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.c.beginTerm(ctx)
}

// Resign ends the term.
func (s *Steps) Resign() {
	s.stop()
	s.c.endTerm()
}

// Led takes in on which node the controller is that leads.
func (s *Steps) Led(node string) { s.c.reach.setLeader(node) }

// Found takes in what has become of a node that is probed.
func (s *Steps) Found(change probe.Change) { s.c.takeReachability(change) }

// AgentFound takes in that an agent was found dead, or alive again.
func (s *Steps) AgentFound(change probe.AgentChange) { s.c.takeAgent(change) }

// Step takes in what has come, and decides if that is due. It returns when to step again though nothing comes; zero:
// not.
func (s *Steps) Step() (again time.Time) {
	s.c.drainChanges()
	for len(s.c.results) > 0 {
		s.c.takeResult(<-s.c.results)
	}
	s.c.followTargets()
	now := s.c.now()
	again = s.c.source.LookAtWatches(now)
	if wait := s.c.decideWhenDue(now); wait > 0 && now.Add(wait).Before(again) {
		again = now.Add(wait)
	}
	s.c.events.told = nil
	return again
}
