package probe_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/probe/probetest"
)

// serves is a health service without TLS.
func serves(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- probe.Serve(ctx, l, probe.Files{}, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// client asks from an address of 127.0.0.0/8.
func client(t *testing.T, to, from string) grpc_health_v1.HealthClient {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return d.DialContext(ctx, "tcp", to) }
	c, err := grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return grpc_health_v1.NewHealthClient(c)
}

// served counts the Watches that are answered, one of each client. Those that should be may take long; who is kept
// waiting is given a moment.
func served(t *testing.T, want int, clients ...grpc_health_v1.HealthClient) (n int) {
	t.Helper()
	answered := make(chan struct{}, len(clients))
	for _, c := range clients {
		go watch(t.Context(), c, answered)
	}
	for patience := 20 * time.Second; ; n++ {
		if n >= want {
			patience = 500 * time.Millisecond
		}
		select {
		case <-answered:
		case <-time.After(patience):
			return n
		}
	}
}

// watch signals that a stream is answered. To begin one waits, too.
func watch(ctx context.Context, c grpc_health_v1.HealthClient, answered chan<- struct{}) {
	stream, err := c.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: probe.Service})
	if err != nil {
		return
	}
	if _, err := stream.Recv(); err == nil {
		answered <- struct{}{}
	}
}

func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	clients := slices.Repeat([]grpc_health_v1.HealthClient{client(t, serves(t), "127.0.0.2")}, 10)
	if n := served(t, 4, clients...); n != 4 {
		t.Errorf("%d of 10 streams are served over one connection, want 4", n)
	}
}

func TestConnectionsOfAPeerAreBounded(t *testing.T) {
	at := serves(t)
	var clients []grpc_health_v1.HealthClient
	for range 8 {
		clients = append(clients, client(t, at, "127.0.0.2"))
	}
	if n := served(t, 4, clients...); n != 4 {
		t.Errorf("%d of 8 connections of one peer are served, want 4", n)
	}
	if served(t, 1, client(t, at, "127.0.0.3")) != 1 {
		t.Error("a controller is not served while a stranger asks")
	}
}

// Eight strangers hold all connections, and never finish a handshake. They come again as soon as they are closed; the
// controller gets the agent's beats all the while.
func TestStrangersDoNotSilenceTheAgent(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]probe.Files{"plain": {},
		"TLS": probetest.NewAuthority(t, "good").Write(t.TempDir(), "ovn")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.agent(61, files)
			for i := range 32 {
				go besiege(t, fmt.Sprintf("127.0.0.61:%d", l.port), fmt.Sprintf("127.0.3.%d", 1+i/4))
			}
			time.Sleep(500 * time.Millisecond)
			l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 2 * time.Second, TLS: files}, 61)
			l.quiet(12 * time.Second) // an agent that never answered is away after ten
		})
	}
}

// besiege keeps a connection open that says nothing, until the test ends.
func besiege(t *testing.T, to, from string) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for t.Context().Err() == nil {
		c, err := d.DialContext(t.Context(), "tcp", to)
		if err != nil {
			return
		}
		ended := context.AfterFunc(t.Context(), func() { c.Close() })
		_, _ = io.Copy(io.Discard, c)
		ended()
		c.Close()
		time.Sleep(100 * time.Millisecond)
	}
}

// A flood of requests takes the peer's time, not the agent's.
func TestRequestsOfAPeerAreBounded(t *testing.T) {
	at := serves(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var answers atomic.Int64
	c := client(t, at, "127.0.0.2")
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				if _, err := c.Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err == nil {
					answers.Add(1)
				}
			}
		}()
	}
	<-ctx.Done()
	// A request is 50 bytes or more, of 8 KiB a second and twice as much at once. A service without bounds answers
	// several times as many.
	if have := answers.Load(); have > 1500 {
		t.Errorf("%d requests of one peer were answered in 3 s", have)
	}
}
