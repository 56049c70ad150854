package traffic

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
)

// Receiver notes which source the traffic at an external host has.
type Receiver struct {
	conn *net.UDPConn

	mu     sync.Mutex
	source netip.Addr
	since  map[netip.Addr]time.Time // when a source was first seen after the one before
	last   time.Time                // of all sources
	gap    time.Duration            // the longest between two datagrams since LongestGap began
	change chan struct{}
}

// Receive listens in a network namespace.
func Receive(namespace string) (*Receiver, error) {
	r := &Receiver{since: map[netip.Addr]time.Time{}, change: make(chan struct{}, 1)}
	err := sandbox.InNetns(namespace, func() (err error) {
		r.conn, err = net.ListenUDP("udp", &net.UDPAddr{Port: Port})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", namespace, err)
	}
	go r.run()
	return r, nil
}

func (r *Receiver) run() {
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

func (r *Receiver) note(source netip.Addr, now time.Time) {
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

// From waits until the traffic has this source, and says since when.
func (r *Receiver) From(ctx context.Context, source netip.Addr) (time.Time, error) {
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

// LongestGap looks at the traffic for a time: how long was there none?
func (r *Receiver) LongestGap(ctx context.Context, during time.Duration) (time.Duration, error) {
	r.mu.Lock()
	r.gap, r.last = 0, time.Now()
	r.mu.Unlock()
	err := harness.SleepUntil(ctx, time.Now().Add(during))
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.gap, time.Since(r.last)), err
}

// Close ends it.
func (r *Receiver) Close() { _ = r.conn.Close() }

// Stream has a pod send a datagram every 2 ms to an external host, always from the same port, until the job is stopped.
func Stream(ctx context.Context, c *harness.Cluster, p *corev1.Pod, to netip.Addr) (*harness.Job, error) {
	return c.InPod(ctx, p, Sender, "stream", netip.AddrPortFrom(to, Port).String())
}
