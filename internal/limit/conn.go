package limit

import (
	"context"
	"net"

	"golang.org/x/time/rate"
)

// conn reads no faster than its peer may send. TCP holds back the rest.
type conn struct {
	net.Conn
	bytes   *rate.Limiter
	release func()
}

// Read takes the time that what it has read stands for, two seconds at most.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), c.bytes.Burst())])
	if n > 0 {
		if waited := c.bytes.WaitN(context.Background(), n); err == nil {
			err = waited
		}
	}
	return n, err
}

// Close ends the connection once.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}
