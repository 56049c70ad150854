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
	if count == 0 {
		return fmt.Errorf("no connection to %s was answered within %s", args[0], answerWithin)
	}
	_, err = fmt.Printf("%.1f\n", float64(count)/took.Seconds())
	return err
}

// answerWithin is how long a client waits for a connection and its byte. One that takes longer costs its time and is not counted: a port that is used again
// while conntrack still holds its former connection may lose a packet, here as there.
const answerWithin = time.Second

// openUntil opens connections until the context ends. Ports that are all in use for a moment are no failure: others close theirs.
func openUntil(ctx context.Context, to string, n *atomic.Int64) error {
	for ctx.Err() == nil {
		err := openOne(ctx, to)
		var slow net.Error
		switch {
		case err == nil:
			n.Add(1)
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, syscall.EADDRNOTAVAIL) && !(errors.As(err, &slow) && slow.Timeout()):
			return err
		}
	}
	return nil
}

func openOne(ctx context.Context, to string) error {
	c, err := (&net.Dialer{Timeout: answerWithin}).DialContext(ctx, "tcp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetLinger(0) // no TIME_WAIT: ports would run out
	_ = c.SetDeadline(time.Now().Add(answerWithin))
	if _, err = io.ReadFull(c, make([]byte, 1)); err != nil {
		return fmt.Errorf("no answer of %s: %w", to, err)
	}
	return nil
}
