package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/egret-net/egret/internal/limit"
)

const (
	// shortestBeat is as often as a server answers a Watch without being asked again.
	shortestBeat = 20 * time.Millisecond
	// sessionAge is how old a session gets, so that certificates that were exchanged come into use on both sides.
	sessionAge = 10 * time.Minute
	// idle is how long a connection may be without a request.
	idle = time.Minute
	// handshake is how long TLS and HTTP/2 may take to begin.
	handshake  = 5 * time.Second
	maxStreams = 4
)

// bounds are wide enough for some controllers, each with one session and knocks beside it while it is silent. Who has
// no certificate costs a handshake at most, where there is TLS.
var bounds = limit.Bounds{Connections: 32, PerPeer: 4, NewPerSecond: 20, BytesPerSecond: 8 << 10}

// serverBounds are bounds on what one connection costs: a Watch, a Check, and one of each that is just ending; requests
// of some bytes.
func serverBounds() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: sessionAge,
			MaxConnectionAgeGrace: time.Second, MaxConnectionIdle: idle}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: idle}),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(4 << 10), grpc.MaxRecvMsgSize(1 << 10),
		grpc.ConnectionTimeout(handshake),
	}
}

// health answers grpc.health.v1 for a process that serves for as long as it runs.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

// Serve answers on a listener, with TLS if there are files for it, until ctx is done. The log says what is wrong with
// these.
func Serve(ctx context.Context, l net.Listener, files Files, log *slog.Logger) error {
	creds, err := serverCredentials(files, log)
	if err != nil {
		l.Close()
		return err
	}
	s := grpc.NewServer(append(serverBounds(), grpc.Creds(creds))...)
	grpc_health_v1.RegisterHealthServer(s, health{})
	defer context.AfterFunc(ctx, s.Stop)()
	if err := s.Serve(limit.Listen(l, bounds)); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("health service on %s: %w", l.Addr(), err)
	}
	return nil
}

func isKnownService(service string) bool { return service == "" || service == Service }

// Check is one answer.
func (health) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse,
	error) {
	if !isKnownService(r.Service) {
		return nil, status.Errorf(codes.NotFound, "no service %q: ask for %q", r.Service, Service)
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}

// Watch answers once, and then with each beat if any were asked for.
func (health) Watch(r *grpc_health_v1.HealthCheckRequest,
	stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	answer := &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN}
	if isKnownService(r.Service) {
		answer.Status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	beats, stop := beatsOf(stream.Context())
	defer stop()
	for {
		if err := stream.Send(answer); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-beats:
		}
	}
}

// beatsOf are the beats that a request asks for; it may ask for none.
func beatsOf(ctx context.Context) (<-chan time.Time, func()) {
	values := metadata.ValueFromIncomingContext(ctx, beatKey)
	if len(values) == 0 {
		return nil, func() {}
	}
	d, err := time.ParseDuration(values[0])
	if err != nil {
		return nil, func() {}
	}
	t := time.NewTicker(max(d, shortestBeat))
	return t.C, t.Stop
}
