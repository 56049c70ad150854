// Package metrics serves what a program says of itself: /metrics for Prometheus, and /healthz.
//
// In: a registry, and a question whether the program lives. Out: HTTP, until a context ends.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Serve answers /healthz and /metrics on an address until ctx is done. With an empty address it only waits.
func Serve(ctx context.Context, address string, registry *prometheus.Registry, alive func() bool) error {
	if address == "" {
		<-ctx.Done()
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !alive() {
			http.Error(w, "the loop does not go round: see the log for what it waits for", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics on %s: %w; give another --metrics-address", address, err)
	}
	return nil
}
