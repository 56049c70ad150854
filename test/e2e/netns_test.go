package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netns"
)

// inNetns runs do on a thread of its own inside a named network namespace; sockets that do opens stay in it. The thread ends with it.
func inNetns(name string, do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		ns, err := netns.GetFromPath(filepath.Join("/run/netns", name))
		if err != nil {
			result <- fmt.Errorf("network namespace %s: %w", name, err)
			return
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			result <- fmt.Errorf("enter network namespace %s: %w", name, err)
			return
		}
		result <- do()
	}()
	return <-result
}

// clientIn speaks HTTP from inside a network namespace, with a new connection for each request.
func clientIn(namespace string) *http.Client {
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = inNetns(namespace, func() (err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
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
	err := inNetns(namespace, func() (err error) {
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

// swallowIn takes UDP datagrams on a port inside a network namespace until the test ends, so that nobody answers them with ICMP.
func swallowIn(t *testing.T, namespace string, port int) {
	t.Helper()
	var socket net.PacketConn
	err := inNetns(namespace, func() (err error) {
		socket, err = net.ListenPacket("udp", net.JoinHostPort("", strconv.Itoa(port)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	go func() {
		for buffer := make([]byte, 2048); ; {
			if _, _, err := socket.ReadFrom(buffer); err != nil {
				return
			}
		}
	}()
}

// clientIP answers every request with the client's address:port.
var clientIP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) })
