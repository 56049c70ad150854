package limit

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// conn reads no faster than its peer may send. TCP holds back the rest.
type conn struct {
	net.Conn
	bytes   *rate.Limiter
	now     func() time.Time
	moved   atomic.Int64 // when bytes last went either way, in nanoseconds since 1970
	release func()
}

// Read takes the time that what it has read stands for, two seconds at most.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), c.bytes.Burst())])
	if n > 0 {
		c.noteTraffic()
		if waited := c.bytes.WaitN(context.Background(), n); err == nil {
			err = waited
		}
	}
	return n, err
}

// Write counts as use of the connection: a peer that is only told things needs it.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.noteTraffic()
	}
	return n, err
}

func (c *conn) noteTraffic() { c.moved.Store(c.now().UnixNano()) }

// Close ends the connection once.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}
