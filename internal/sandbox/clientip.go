package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// ServeClientIP answers GET /clientip on all addresses of the present network namespace with the client's
// address:port, until ctx ends.
func ServeClientIP(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /clientip", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr)
	})
	server := &http.Server{
		Addr:              net.JoinHostPort("", strconv.Itoa(ClientIPPort)),
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
