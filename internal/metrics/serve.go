// Package metrics serves what a program says of itself: /metrics for Prometheus, and /healthz.
//
// In: a registry, and a question whether the program lives. Out: HTTP, until a context ends. Anybody who reaches the
// address may ask: what is answered is at most two seconds old and made once for all, and connections are bounded.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/egret-net/egret/internal/limit"
)

const (
	// freshness is how old an answer may be, and how often it is made at most: reading the targets runs commands.
	freshness = 2 * time.Second
	// slowest is the longest that a request waits for an answer to be made. A loop may take 15 seconds before it counts
	// as stuck.
	slowest = 18 * time.Second
)

// bounds let several Prometheus servers ask at a time. A connection carries one request: those that clients keep would
// use up the bounds.
var bounds = limit.Bounds{Connections: 64, PerPeer: 16, NewPerSecond: 50, BytesPerSecond: 32 << 10}

// Health is what /healthz says: 200 or 503, and what is wrong, one line each. A program that waits for others lives all
// the same: to start it anew would not help.
type Health struct {
	Alive    bool
	Problems []string
}

// Serve answers /healthz and /metrics on an address until ctx is done. With an empty address it only waits.
func Serve(ctx context.Context, address string, registry *prometheus.Registry, health func() Health) error {
	if address == "" {
		<-ctx.Done()
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("metrics on %s: %w; give another --metrics-address", address, err)
	}
	return serve(ctx, limit.Listen(l, bounds), registry, health)
}

func serve(ctx context.Context, l net.Listener, registry prometheus.Gatherer, ask func() Health) error {
	page, health := newCache(func() page { return gather(registry) }), newCache(ask)
	go page.run(ctx)
	go health.run(ctx)
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) { answerPage(w, r, page) })
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) { answerHealth(w, r, health) })
	server := &http.Server{Handler: mux, MaxHeaderBytes: 8 << 10, ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:  5 * time.Second,
		WriteTimeout: slowest + 10*time.Second}
	server.SetKeepAlivesEnabled(false)
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics on %s: %w", l.Addr(), err)
	}
	return nil
}

func answerHealth(w http.ResponseWriter, r *http.Request, health *cache[Health]) {
	h, err := health.latest(r.Context())
	problems := strings.Join(append([]string{""}, h.Problems...), "\n")
	if err != nil || !h.Alive {
		http.Error(w, "the loop does not go round: see the log for what it waits for"+problems,
			http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok"+problems)
}
