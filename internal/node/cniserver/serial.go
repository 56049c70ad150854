package cniserver

import (
	"context"
	"sync"
)

// serial lets one caller at a time through for each key.
type serial struct {
	mu   sync.Mutex
	keys map[string]*turn
}

type turn struct {
	free    chan struct{} // holds a value while nobody has the key
	waiting int
}

// lockKey waits for the key; the caller calls unlock when done.
func (s *serial) lockKey(ctx context.Context, key string) (unlock func(), err error) {
	s.mu.Lock()
	if s.keys == nil {
		s.keys = map[string]*turn{}
	}
	t := s.keys[key]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		s.keys[key] = t
	}
	t.waiting++
	s.mu.Unlock()
	select {
	case <-t.free:
		return func() { t.free <- struct{}{}; s.leaveTurn(key, t) }, nil
	case <-ctx.Done():
		s.leaveTurn(key, t)
		return nil, context.Cause(ctx)
	}
}

func (s *serial) leaveTurn(key string, t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.waiting--; t.waiting == 0 {
		delete(s.keys, key)
	}
}
