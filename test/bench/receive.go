package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/traffic"
)

// receiver notes which source the traffic at an external host has.
type receiver struct {
	conn *net.UDPConn

	mu     sync.Mutex
	source netip.Addr
	since  map[netip.Addr]time.Time // when a source was first seen after the one before
	last   time.Time                // of all sources
	gap    time.Duration            // the longest between two datagrams since longestGap began
	change chan struct{}
}

// receive listens in a network namespace.
func receive(namespace string) (*receiver, error) {
	r := &receiver{since: map[netip.Addr]time.Time{}, change: make(chan struct{}, 1)}
	err := sandbox.InNetns(namespace, func() (err error) {
		r.conn, err = net.ListenUDP("udp", &net.UDPAddr{Port: traffic.Port})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", namespace, err)
	}
	go r.run()
	return r, nil
}

func (r *receiver) run() {
	buffer := make([]byte, 64)
	for {
		_, from, err := r.conn.ReadFromUDPAddrPort(buffer)
		now := time.Now()
		if err != nil {
			return
		}
		r.note(from.Addr().Unmap(), now)
	}
}

func (r *receiver) note(source netip.Addr, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gap, r.last = max(r.gap, now.Sub(r.last)), now
	if source == r.source {
		return
	}
	r.source, r.since[source] = source, now
	select {
	case r.change <- struct{}{}:
	default:
	}
}

// from waits until the traffic has this source, and says since when.
func (r *receiver) from(ctx context.Context, source netip.Addr) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		r.mu.Lock()
		now, since := r.source, r.since[source]
		r.mu.Unlock()
		if now == source {
			return since, nil
		}
		select {
		case <-r.change:
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("the external host sees traffic from %s, not from %s", now, source)
		}
	}
}

// longestGap looks at the traffic for a time: how long was there none?
func (r *receiver) longestGap(ctx context.Context, during time.Duration) (time.Duration, error) {
	r.mu.Lock()
	r.gap, r.last = 0, time.Now()
	r.mu.Unlock()
	err := sleepUntil(ctx, time.Now().Add(during))
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.gap, time.Since(r.last)), err
}

func (r *receiver) close() { _ = r.conn.Close() }
