package health

import (
	"errors"
	"maps"
	"net/http"
	"sync"

	"github.com/egret-net/egret/internal/plan"
)

// Fake opens ports in memory.
type Fake struct {
	mu      sync.Mutex
	servers map[uint16]*server
}

// NewFake has no port open.
func NewFake() *Fake { return &Fake{servers: map[uint16]*server{}} }

var errTaken = errors.New("address already in use")

// Serve is part of Listeners. A port that is open already is taken.
func (f *Fake) Serve(port uint16, h http.Handler) (end func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servers[port] != nil {
		return nil, errTaken
	}
	f.servers[port] = h.(*server)
	return func() { f.closePort(port) }, nil
}

func (f *Fake) closePort(port uint16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.servers, port)
}

// Held is what the servers say, by port.
func (f *Fake) Held() map[plan.HealthCheck]plan.HealthSpec {
	f.mu.Lock()
	servers := maps.Clone(f.servers)
	f.mu.Unlock()
	held := map[plan.HealthCheck]plan.HealthSpec{}
	for port, s := range servers {
		held[plan.HealthCheck{Port: port}], _ = s.currentSpec()
	}
	return held
}
