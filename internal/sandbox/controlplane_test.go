package sandbox

import (
	"net"
	"testing"
	"time"
)

// TestFormerPort: the port by which clients know the API server is not one that the kernel gives away, and is taken
// again as soon as it is free.
func TestFormerPort(t *testing.T) {
	l, err := listenLoopback(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if port < firstPort || port > lastPort {
		t.Errorf("port %d, want one from %d to %d", port, firstPort, lastPort)
	}
	time.AfterFunc(100*time.Millisecond, func() { l.Close() })
	again, err := listenLoopback(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if have := again.Addr().(*net.TCPAddr).Port; have != port {
		t.Errorf("port %d after %d was busy for a moment, want the same", have, port)
	}
}
