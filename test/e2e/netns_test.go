package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
	return clientBy(&dialer, func(do func() error) error { return sandbox.InNetns(namespace, do) })
}

// client does so from inside a pod's network namespace: a connection of the pod's, without the seconds of CPU that a
// process in its container costs over a run.
func (n *namespace) client(pod string) *http.Client {
	client := clientBy(&net.Dialer{}, func(do func() error) error { return n.inside(pod, do) })
	client.Timeout = connectTimeout
	return client
}

// clientAt is the same, from a port.
func (n *namespace) clientAt(pod string, port int) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}}
	return clientBy(&dialer, func(do func() error) error { return n.inside(pod, do) })
}

func (n *namespace) inside(pod string, do func() error) error {
	if ip := n.ips[pod][0]; !n.c.isNodes(ip) {
		return n.c.InPod(n.at[pod], ip, do)
	}
	return sandbox.InNetns(n.at[pod], do)
}

func (c *cluster) isNodes(ip netip.Addr) bool {
	return slices.ContainsFunc(c.nodes, func(m sandbox.Member) bool { return slices.Contains(m.IPs, ip) })
}

func clientBy(dialer *net.Dialer, inside func(do func() error) error) *http.Client {
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = inside(func() (err error) {
			conn, err = dialer.DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: lookTimeout}
}

// serveIn answers HTTP on a port inside a network namespace until the test ends. A pod of a test before, in its host's
// network, may still have the port for a moment.
func serveIn(t *testing.T, namespace string, port int, handler http.Handler) {
	t.Helper()
	var listener net.Listener
	within(t, soon, func() error {
		return sandbox.InNetns(namespace, func() (err error) {
			listener, err = net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
			return err
		})
	})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
}

// clientIP answers every request with the client's address:port.
var clientIP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) })
