package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// Listeners open ports; Sockets does, and Fake.
type Listeners interface {
	// Serve answers requests at a TCP port of all the host's addresses with h, until the returned function is called.
	Serve(port uint16, h http.Handler) (end func(), err error)
}

// Plane is a server a port. It ends with its context.
type Plane struct {
	listeners Listeners

	mu      sync.Mutex
	servers map[plan.HealthCheck]*server
}

var _ plane.Plane = (*Plane)(nil)

// New is a plane whose servers end when ctx does.
func New(ctx context.Context, l Listeners) *Plane {
	p := &Plane{listeners: l, servers: map[plan.HealthCheck]*server{}}
	context.AfterFunc(ctx, p.closeAll)
	return p
}

// Name is part of plane.Plane.
func (p *Plane) Name() string { return "health" }

// Grow opens ports, and tells the servers what to say.
func (p *Plane) Grow(_ context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var refused []error
	for k, spec := range want.HealthChecks.Rows() {
		if err := p.servePort(k, spec); err != nil {
			row := "health check " + strconv.Itoa(int(k.Port))
			refused = append(refused,
				&plane.Refused{Plane: p.Name(), Owner: want.HealthChecks.Owner(k), Row: row, Err: err})
		}
	}
	return errors.Join(refused...)
}

func (p *Plane) servePort(k plan.HealthCheck, spec plan.HealthSpec) error {
	if s := p.servers[k]; s != nil {
		s.setSpec(spec)
		return nil
	}
	s := &server{spec: spec, at: time.Now()}
	end, err := p.listeners.Serve(k.Port, s)
	if err != nil {
		return fmt.Errorf("listen at port %d, which %s names (does another process have it?): %w", k.Port, describeSource(spec),
			err)
	}
	s.end, p.servers[k] = end, s
	return nil
}

// describeSource is where a port comes from.
func describeSource(spec plan.HealthSpec) string {
	if spec.Node != "" {
		return "--node-health-port"
	}
	return "the Service's healthCheckNodePort"
}

// Shrink closes the ports that want does not have.
func (p *Plane) Shrink(_ context.Context, want *plan.State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, s := range p.servers {
		if _, ok := want.HealthChecks[k]; !ok {
			s.end()
			delete(p.servers, k)
		}
	}
	return nil
}

// Forget is part of plane.Plane: the ports are this process' own, and nobody takes them away.
func (p *Plane) Forget() {}

func (p *Plane) closeAll() {
	_ = p.Shrink(context.Background(), plan.New()) // it never fails
}

// Sockets are the host's own.
type Sockets struct{}

// requestTimeout bounds what a client that does not finish its request costs.
const requestTimeout = 5 * time.Second

// Serve is part of Listeners.
func (Sockets) Serve(port uint16, h http.Handler) (end func(), err error) {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(int(port)))
	if err != nil {
		return nil, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout,
		WriteTimeout: requestTimeout}
	go func() { _ = s.Serve(l) }() // it ends with Close
	return func() { _ = s.Close() }, nil
}
