package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// clientIn speaks HTTP from inside a network namespace, with a new connection for each request.
func clientIn(namespace string) *http.Client { return clientAs(namespace, netip.Addr{}) }

// clientAs is the same, from one of the namespace's addresses.
func clientAs(namespace string, from netip.Addr) *http.Client {
	var dialer net.Dialer
	if from.IsValid() {
		dialer.LocalAddr = &net.TCPAddr{IP: from.AsSlice()}
	}
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = sandbox.InNetns(namespace, func() (err error) {
			conn, err = dialer.DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: lookTimeout}
}

// serveIn answers HTTP on a port inside a network namespace until the test ends.
func serveIn(t *testing.T, namespace string, port int, handler http.Handler) {
	t.Helper()
	var listener net.Listener
	err := sandbox.InNetns(namespace, func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
}

// clientIP answers every request with the client's address:port.
var clientIP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) })
