package kube

import (
	"context"
	"net"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Silent is how long the API server says nothing at all before it counts as out of reach: it is asked for a sign of
// life after idlePing seconds, and a connection on which none comes for pingTimeout seconds is given up.
const (
	Silent      = 10 * time.Second
	idlePing    = "4"
	pingTimeout = "4"
	dialTimeout = 3 * time.Second
)

// Contact remembers when the API server last sent anything: any byte on any connection counts, and HTTP/2 pings make
// sure that there is one every few seconds. It measures from its own start, and not by the date: that may be set while
// the API server says nothing or much.
type Contact struct {
	start time.Time
	last  atomic.Int64 // nanoseconds after start
}

// NewContact makes the connections of a configuration tell when they receive something. It comes before NewClients.
func NewContact(c *rest.Config) *Contact {
	// client-go takes these from the environment and from nowhere else; its own are 30 s and 15 s.
	for name, seconds := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": idlePing,
		"HTTP2_PING_TIMEOUT_SECONDS": pingTimeout} {
		if _, set := os.LookupEnv(name); !set {
			os.Setenv(name, seconds)
		}
	}
	contact := &Contact{start: time.Now()}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &receivingConn{conn, contact}, nil
	}
	return contact
}

// Silence is for how long nothing was received.
func (c *Contact) Silence() time.Duration { return time.Since(c.start) - time.Duration(c.last.Load()) }

func (c *Contact) noteAnswer() { c.last.Store(int64(time.Since(c.start))) }

// receivingConn tells of what it reads.
type receivingConn struct {
	net.Conn
	contact *Contact
}

func (c *receivingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.contact.noteAnswer()
	}
	return n, err
}
