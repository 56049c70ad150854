package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// apart is the distance of new connections' starts: several are under way at a time when they fail.
	apart = 10 * time.Millisecond
	// patience is how long a new connection may take, below TCP's first retransmission after 1 s: each tries the path
	// once.
	patience = 300 * time.Millisecond
	// beat is the distance of bytes over a held connection, and heartbeat how long an echo may take.
	beat      = 100 * time.Millisecond
	heartbeat = 5 * time.Second
)

// makeConnections opens connections to an echo server, for ever; it is a form of this program. Some are held, and a
// byte goes to and fro over each; a new one starts every 10 ms. Lines on standard output, times in nanoseconds since
// 1970:
//
//	held NUMBER TIME SOURCE        a held connection is there, and this is its source as the server sees it
//	broken NUMBER TIME             it has ended, or there was no echo for 5 s
//	new START END SOURCE|-         a new connection, and whether it got its answer within 300 ms
func makeConnections(to string, held int) {
	out := &lines{w: os.Stdout}
	for i := range held {
		go hold(to, i, out)
	}
	for range time.Tick(apart) {
		go try(to, out)
	}
}

// lines lets several goroutines write whole lines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) say(words ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.w, words...) // the reader is gone when the run is over
}

// try makes one new connection and reads its source.
func try(to string, out *lines) {
	start := time.Now()
	source := "-"
	if c, from, err := dialTCP(to, start.Add(patience)); err == nil {
		source = from
		c.Close()
	}
	out.say("new", start.UnixNano(), time.Now().UnixNano(), source)
}

// dialTCP connects and reads the line with its source, all before the deadline.
func dialTCP(to string, deadline time.Time) (*net.TCPConn, string, error) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, "", err
	}
	c := conn.(*net.TCPConn)
	_ = c.SetLinger(0) // no TIME_WAIT: ports would run out
	_ = c.SetDeadline(deadline)
	line := make([]byte, 64)
	n, err := c.Read(line)
	if err != nil {
		c.Close()
		return nil, "", err
	}
	return c, strings.TrimSpace(string(line[:n])), nil
}

// hold keeps a connection until it breaks; the first one that can be made.
func hold(to string, number int, out *lines) {
	c, source, err := dialTCP(to, time.Now().Add(patience))
	for err != nil {
		time.Sleep(beat)
		c, source, err = dialTCP(to, time.Now().Add(patience))
	}
	defer c.Close()
	out.say("held", number, time.Now().UnixNano(), source)
	for echo := make([]byte, 1); err == nil; {
		time.Sleep(beat)
		_ = c.SetDeadline(time.Now().Add(heartbeat))
		if _, err = c.Write([]byte{'.'}); err == nil {
			_, err = c.Read(echo)
		}
	}
	out.say("broken", number, time.Now().UnixNano())
}
