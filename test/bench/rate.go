package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// hello is what the other end of a new connection says first.
const hello = 'h'

// greet answers every connection on a port with one byte, for ever; it is this program's part inside the pod behind a Service.
func greet(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("greet: want a port")
	}
	l, err := net.Listen("tcp", net.JoinHostPort("", args[0]))
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if _, err := c.Write([]byte{hello}); err == nil {
				_, _ = io.Copy(io.Discard, c) // until the client closes: then it is the one that has no TIME_WAIT
			}
		}()
	}
}

// openConnections opens new connections one after the other, several at a time, reads the other end's byte and closes them by a reset; it is
// this program's part inside a client's network. It prints how many there were in the time, a warm-up of a quarter before it not counted.
func openConnections(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("open: want HOST:PORT, how many at a time, and a duration")
	}
	clients, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	span, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	var n atomic.Int64
	ctx, cancel := context.WithTimeout(context.Background(), span+span/4)
	defer cancel()
	var all sync.WaitGroup
	failures := make(chan error, clients)
	for range clients {
		all.Go(func() {
			if err := openUntil(ctx, args[0], &n); err != nil {
				failures <- err
			}
		})
	}
	time.Sleep(span / 4)
	before, start := n.Load(), time.Now()
	<-ctx.Done()
	count, took := n.Load()-before, time.Since(start)
	all.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	_, err = fmt.Printf("%.1f\n", float64(count)/took.Seconds())
	return err
}

// openUntil opens connections until the context ends. Ports that are all in use for a moment are no failure: others close theirs.
func openUntil(ctx context.Context, to string, n *atomic.Int64) error {
	d := &net.Dialer{Timeout: 5 * time.Second}
	for ctx.Err() == nil {
		c, err := d.DialContext(ctx, "tcp", to)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			continue
		}
		if err != nil {
			return err
		}
		_ = c.(*net.TCPConn).SetLinger(0) // no TIME_WAIT: ports would run out
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		_, err = io.ReadFull(c, make([]byte, 1))
		c.Close()
		if err != nil {
			return fmt.Errorf("no answer of %s: %w", to, err)
		}
		n.Add(1)
	}
	return nil
}
