package main

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// echo serves one connection at a time: it answers what it read to the end, after the end.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			content, _ := io.ReadAll(c)
			_, _ = c.Write(content)
			c.Close()
		}
	}()
	return l.Addr().String()
}

// startForwarder forwards an inherited listener to target; stop ends it and returns what forward returned.
func startForwarder(t *testing.T, target string) (addr string, stop func() error) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	// inheritedListener owns the number it is given, as after an exec; f must not close the same one again.
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	addr = l.Addr().String()
	l.Close()
	inherited, err := inheritedListener(fd)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- forward(ctx, inherited, target) }()
	return addr, func() error { cancel(); return <-ended }
}

func TestForwardPassesBytesAndHalfClose(t *testing.T) {
	addr, stop := startForwarder(t, echo(t))
	for range 3 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		have, err := io.ReadAll(conn)
		if err != nil || string(have) != "hello" {
			t.Errorf("have %q %v", have, err)
		}
		conn.Close()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestForwardOutlivesAnAbsentTarget(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	absent := l.Addr().String()
	l.Close()
	addr, stop := startForwarder(t, absent)
	for range 2 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); err != nil && !isReset(err) {
			t.Errorf("want the connection closed, have %v", err)
		}
		conn.Close()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestForwardEndsWithOpenConnections(t *testing.T) {
	addr, stop := startForwarder(t, echo(t))
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("forward waits for an idle connection")
	}
}

func TestInheritedListenerRefusesOtherDescriptors(t *testing.T) {
	if _, err := inheritedListener(1 << 20); err == nil {
		t.Error("a descriptor that is not open was accepted")
	}
}

func isReset(err error) bool {
	_, ok := err.(*net.OpError)
	return ok
}
