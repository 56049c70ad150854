package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Service is the name that OVN-Kubernetes' health service has; "" is the whole agent.
const Service = "Service_Egress_IP"

// beatKey is the request header that asks a Watch for beats: without it, a server answers when something changes only,
// as grpc.health.v1 has it. Its value is their distance, as time.ParseDuration reads it.
const beatKey = "egret-beat"

// session is one connection to an agent, over which it sends beats until the connection ends.
type session struct {
	x        *peer
	ctx      context.Context
	stop     context.CancelFunc
	to       netip.AddrPort
	began    time.Duration
	client   atomic.Pointer[grpc.ClientConn] // nil until there is a connection
	checking atomic.Bool
	good     atomic.Bool // the agent has answered over it
}

func newSession(x *peer, to netip.AddrPort) *session {
	ctx, stop := context.WithCancel(x.ctx)
	return &session{x: x, ctx: ctx, stop: stop, to: to, began: x.p.sinceStart()}
}

// runSession is the session. It returns how it ended, nil for one that did not begin.
func (s *session) runSession() error {
	defer s.stop()
	c := s.x.dialAgent(s.ctx, s.to)
	if c == nil {
		return nil
	}
	defer c.Close()
	cc, err := s.connectGRPC(c)
	if err != nil {
		return err
	}
	defer cc.Close()
	s.client.Store(cc)
	return s.watchBeats(cc)
}

// connectGRPC speaks gRPC over an open connection, and over no other: the end of the connection is the end of the
// session.
func (s *session) connectGRPC(c net.Conn) (*grpc.ClientConn, error) {
	creds, err := s.x.p.material.clientCredentials()
	if err != nil {
		return nil, err
	}
	var used atomic.Bool
	dialer := func(context.Context, string) (net.Conn, error) {
		if used.Swap(true) {
			return nil, errors.New("the connection to the agent has ended")
		}
		return c, nil
	}
	return grpc.NewClient("passthrough:///"+s.to.String(), grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(dialer), grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0), grpc.WithUserAgent("egret-controller"),
		// Windows of a fixed size: gRPC would measure the bandwidth with a ping for each beat.
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
}

// watchBeats receives beats until the stream ends. An agent that has no Watch, or one without beats, is asked with
// check.
func (s *session) watchBeats(cc *grpc.ClientConn) error {
	ctx := metadata.AppendToOutgoingContext(s.ctx, beatKey, s.x.p.beatInterval().String())
	stream, err := grpc_health_v1.NewHealthClient(cc).Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: Service})
	for err == nil {
		var r *grpc_health_v1.HealthCheckResponse
		if r, err = stream.Recv(); err == nil {
			s.noteHealth(r)
		}
	}
	if status.Code(err) != codes.Unimplemented {
		return err
	}
	<-s.ctx.Done()
	return nil
}

func (s *session) noteHealth(r *grpc_health_v1.HealthCheckResponse) {
	if r.Status == grpc_health_v1.HealthCheckResponse_SERVING {
		s.good.Store(true)
		s.x.agentAnswered()
	} else {
		s.x.hostAnswered()
	}
}

// checkHealth asks over the same connection, and does not wait for the answer.
func (s *session) checkHealth() {
	cc := s.client.Load()
	if cc == nil || s.checking.Swap(true) {
		return
	}
	go func() {
		defer s.checking.Store(false)
		ctx, cancel := context.WithTimeout(s.ctx, s.x.p.o.Total)
		defer cancel()
		begin := time.Now()
		r, err := grpc_health_v1.NewHealthClient(cc).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: Service})
		if err != nil {
			return // the stream tells, or silence
		}
		s.x.p.o.RTT(time.Since(begin))
		s.noteHealth(r)
	}()
}
