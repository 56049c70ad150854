// Package metrics serves what a program says of itself: /metrics for Prometheus, /healthz and /readyz.
//
// In: a registry, a question whether the program lives and is ready, and files with a certificate, if there are any.
// Out: HTTP, or HTTPS, until a context ends. Anybody who reaches the address may ask, unless readers need certificates.
// An answer is at most two seconds old and shared by all readers, and connections are bounded.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Health is what /healthz and /readyz say: 200 or 503, and what is wrong, one line each. A program that waits for
// others lives all the same: a restart would not help.
type Health struct {
	Alive    bool
	Problems []string
	// Missing says what a program that has just started has yet to do. Until then a rollout does not go on.
	Missing []string
}

// Options are where and how /metrics is served.
type Options struct {
	Address string // host:port; "": nowhere
	TLS     Files
}

// Serve answers /healthz, /readyz and /metrics on an address until ctx is done. With an empty address it only waits. It
// goes on where the files cannot be read: see Files.
func Serve(ctx context.Context, o Options, registry *prometheus.Registry, health func() Health,
	log *slog.Logger) error {
	if o.Address == "" {
		<-ctx.Done()
		return nil
	}
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return fmt.Errorf("metrics on %s: %w; give another --metrics-bind-address", o.Address, err)
	}
	return serveListener(ctx, o.TLS, limit.Listen(l, bounds), registry, health, log)
}

// ServeHealth answers /healthz and /readyz alone, without TLS, on an address until ctx is done. With an empty address
// it only waits.
func ServeHealth(ctx context.Context, address string, health func() Health) error {
	if address == "" {
		<-ctx.Done()
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("/healthz and /readyz on %s: %w; give another --healthz-bind-address", address, err)
	}
	mux := http.NewServeMux()
	handleHealth(ctx, mux, health)
	return serveUntilDone(ctx, limit.Listen(l, bounds), &http.Server{Handler: mux})
}

func serveListener(ctx context.Context, f Files, l net.Listener, registry prometheus.Gatherer, health func() Health,
	log *slog.Logger) error {
	page := newCache(func() page { return gatherPage(registry) })
	go page.refreshUntilDone(ctx)
	mux := http.NewServeMux()
	handleHealth(ctx, mux, health)
	answer := func(w http.ResponseWriter, r *http.Request) { answerPage(w, r, page) }
	if f.ClientCA != "" {
		answer = requireCertificate(answer)
	}
	mux.HandleFunc("/metrics", answer)
	server := &http.Server{Handler: mux}
	if f.hasAnyFile() {
		l = newCredential(f, log).listenTLS(l)
		// strangers' handshakes that fail are no news
		server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	}
	return serveUntilDone(ctx, l, server)
}

func handleHealth(ctx context.Context, mux *http.ServeMux, ask func() Health) {
	health := newCache(ask)
	go health.refreshUntilDone(ctx)
	for path, judge := range map[string]func(Health) (string, bool){"/healthz": sayAlive, "/readyz": sayReady} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { answerHealth(w, r, health, judge) })
	}
}

// serveUntilDone answers until ctx is done.
func serveUntilDone(ctx context.Context, l net.Listener, server *http.Server) error {
	server.MaxHeaderBytes, server.ReadHeaderTimeout, server.ReadTimeout = 8<<10, 5*time.Second, 5*time.Second
	server.WriteTimeout = slowest + 10*time.Second
	server.SetKeepAlivesEnabled(false)
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics and health on %s: %w", l.Addr(), err)
	}
	return nil
}

func answerHealth(w http.ResponseWriter, r *http.Request, health *cache[Health], judge func(Health) (string, bool)) {
	h, err := health.latestAnswer(r.Context())
	h.Alive = h.Alive && err == nil
	if text, good := judge(h); good {
		fmt.Fprintln(w, text)
	} else {
		http.Error(w, text, http.StatusServiceUnavailable)
	}
}

const standsStill = "the loop does not go round: see the log for what it waits for"

func sayAlive(h Health) (string, bool) {
	first := "ok"
	if !h.Alive {
		first = standsStill
	}
	return strings.Join(append([]string{first}, h.Problems...), "\n"), h.Alive
}

func sayReady(h Health) (string, bool) {
	lines := h.Missing
	if !h.Alive {
		lines = append([]string{standsStill}, lines...)
	}
	if len(lines) == 0 {
		return "ok", true
	}
	return strings.Join(lines, "\n"), false
}
