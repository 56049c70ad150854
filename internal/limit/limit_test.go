package limit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/limit"
)

// wide are bounds that none of these tests meets.
var wide = limit.Bounds{Connections: 100, PerPeer: 100, NewPerSecond: 1000, BytesPerSecond: 1 << 20}

// echo answers with what it reads, on an address of this host's own, within bounds.
func echo(t *testing.T, b limit.Bounds) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = limit.Listen(l, b)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// dial connects from an address of 127.0.0.0/8; 127.0.0.1 is the server's own.
func dial(t *testing.T, to, from string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(context.Background(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// answers says whether the server reads what is sent; otherwise it has closed the connection.
func answers(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte("x")); err != nil {
		return false
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the server neither answers nor closes")
	}
	return err == nil
}

// hasEnded says whether the server has closed a connection.
func hasEnded(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// Who has no connection gets in, in place of the connection that was idle for longest; those in all are no more than
// before.
func TestConnectionsInAll(t *testing.T) {
	b := wide
	b.Connections = 2
	at := echo(t, b)
	first, second := dial(t, at, "127.0.0.2"), dial(t, at, "127.0.0.3")
	if !answers(t, first) || !answers(t, second) || !answers(t, first) {
		t.Fatal("connections within the bounds are not answered")
	}
	third := dial(t, at, "127.0.0.4")
	if !answers(t, third) {
		t.Error("a peer without connections is refused")
	}
	if !hasEnded(t, second) || hasEnded(t, first) {
		t.Errorf("want the idlest connection closed alone: used %t, idle %t", hasEnded(t, first), hasEnded(t, second))
	}
	if answers(t, dial(t, at, "127.0.0.4")) {
		t.Error("a peer takes another's place that has no more than itself")
	}
	if !answers(t, dial(t, at, "127.0.0.1")) {
		t.Error("strangers keep this host itself out")
	}
	third.Close()
	for end := time.Now().Add(10 * time.Second); !answers(t,
		dial(t, at, "127.0.0.2")); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a closed connection still counts")
		}
	}
}

// Peers that together have all connections, each no more than it may, keep nobody out.
func TestManyPeersKeepNobodyOut(t *testing.T) {
	b := wide
	b.Connections, b.PerPeer = 32, 4
	at := echo(t, b)
	var strangers []net.Conn
	for i := range 32 {
		c := dial(t, at, fmt.Sprintf("127.0.1.%d", 1+i/4))
		if !answers(t, c) {
			t.Fatalf("connection %d is not answered", i)
		}
		strangers = append(strangers, c)
	}
	for i := range 3 {
		if !answers(t, dial(t, at, "127.0.0.2")) {
			t.Errorf("connection %d of a peer with fewer than all others is refused", i)
		}
	}
	closed := 0
	for _, c := range strangers {
		if hasEnded(t, c) {
			closed++
		}
	}
	if closed != 3 {
		t.Errorf("%d connections were closed for 3", closed)
	}
}

func TestConnectionsOfOnePeer(t *testing.T) {
	b := wide
	b.PerPeer = 2
	at := echo(t, b)
	for i, want := range []bool{true, true, false} {
		if have := answers(t, dial(t, at, "127.0.0.2")); have != want {
			t.Errorf("connection %d is answered: %t", i, have)
		}
	}
	if !answers(t, dial(t, at, "127.0.0.3")) {
		t.Error("one peer's connections count for another")
	}
}

func TestNewConnectionsASecond(t *testing.T) {
	b := wide
	b.NewPerSecond = 1
	at := echo(t, b)
	answered, began := 0, time.Now()
	for range 20 {
		c := dial(t, at, "127.0.0.2")
		if answers(t, c) {
			answered++
		}
		c.Close()
	}
	if most := 2 + int(time.Since(began).Seconds()) + 1; answered < 2 || answered > most {
		t.Errorf("%d of 20 connections were answered, want 2 at once and one a second, %d in all", answered, most)
	}
	if !answers(t, dial(t, at, "127.0.0.3")) {
		t.Error("one peer's connections count for another")
	}
}

func TestBytesASecond(t *testing.T) {
	b := wide
	b.BytesPerSecond = 1000
	c, began := dial(t, echo(t, b), "127.0.0.2"), time.Now()
	go func() { _, _ = c.Write(make([]byte, 4000)) }()
	if _, err := io.ReadFull(c, make([]byte, 4000)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 1900*time.Millisecond {
		t.Errorf("4000 bytes took %s: want 2000 at once and 1000 a second", took)
	}
}
