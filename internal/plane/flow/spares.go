package flow

import (
	"context"
	"sync"
	"time"
)

// spares are commands that were started ahead, one a bridge that was written to: they have loaded, and wait for their
// input. Starting one takes longer than all that the switch does for a change. They end with ctx, and when this process
// does: with their input.
type spares struct {
	ctx   context.Context
	after time.Duration

	mu    sync.Mutex
	ready map[string]*command
	timer map[string]*time.Timer
}

// rest is how long after a change the next spare is started: until then the processors are left to the change.
const rest = 100 * time.Millisecond

func newSpares(ctx context.Context) *spares {
	return &spares{ctx: ctx, after: rest, ready: map[string]*command{}, timer: map[string]*time.Timer{}}
}

// takeFor is the spare of a bridge, if there is one that has not ended.
func (s *spares) takeFor(bridge string) *command {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.ready[bridge]
	delete(s.ready, bridge)
	if c == nil || c.hasEnded() {
		return nil
	}
	return c
}

// prepareFor has a spare of a bridge started after a rest, unless there is one. It does without where that fails: the
// next change says what is wrong.
func (s *spares) prepareFor(bridge string, start func(context.Context) (*command, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer[bridge] == nil {
		s.timer[bridge] = time.AfterFunc(s.after, func() { s.startFor(bridge, start) })
		return
	}
	s.timer[bridge].Reset(s.after)
}

func (s *spares) startFor(bridge string, start func(context.Context) (*command, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready[bridge] != nil || s.ctx.Err() != nil {
		return
	}
	if c, err := start(s.ctx); err == nil {
		s.ready[bridge] = c
	}
}
