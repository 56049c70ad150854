package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// inheritedListener makes a listener of file descriptor fd. A socket stays in the network namespace it was made in,
// whatever the namespace of the process: this is how a process inside one serves a port outside.
func inheritedListener(fd int) (*net.TCPListener, error) {
	f := os.NewFile(uintptr(fd), "forward")
	if f == nil {
		return nil, fmt.Errorf("--forward-fd %d is not a file descriptor", fd)
	}
	defer f.Close() // FileListener duplicates it
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("--forward-fd %d: want an inherited TCP listener: %w", fd, err)
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("--forward-fd %d: want a TCP listener, have %s", fd, l.Addr().Network())
	}
	return tcp, nil
}

// forward copies the bytes of each connection of l to target (host:port) and back, until ctx ends; it closes l and
// all connections then. A target that does not answer costs its client the connection, nobody else.
func forward(ctx context.Context, l *net.TCPListener, target string) error {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		client, err := l.AcceptTCP()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				client.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("forward to %s: %w", target, err)
		case err != nil: // out of file descriptors, or the client is gone already: both pass
			time.Sleep(10 * time.Millisecond)
		default:
			open.Go(func() { relay(ctx, client, target) })
		}
	}
}

// relay connects client to target until both directions have ended.
func relay(ctx context.Context, client *net.TCPConn, target string) {
	defer client.Close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	server := conn.(*net.TCPConn)
	defer server.Close()
	defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
	var both sync.WaitGroup
	both.Go(func() { pipe(server, client) })
	both.Go(func() { pipe(client, server) })
	both.Wait()
}

// pipe passes on the bytes and then the end of them; after an error it ends the other direction too.
func pipe(dst, src *net.TCPConn) {
	if _, err := io.Copy(dst, src); err != nil {
		src.Close()
		dst.Close()
		return
	}
	_ = dst.CloseWrite() // fails only if dst is gone, which its reader sees
}
