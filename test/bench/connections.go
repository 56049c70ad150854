package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/sandbox"
)

// attempt is a new connection of a pod.
type attempt struct {
	start, end time.Time
	source     netip.Addr // not valid if it failed
}

// ties are the connections of a pod to an echo server outside, as the pod's connect tells of them.
type ties struct {
	*job
	mu       sync.Mutex
	attempts []attempt // in the order of their ends
	held     map[int]netip.Addr
	broken   map[int]time.Time
}

// serveEcho answers connections at an external host until close.
func serveEcho(host string) (close func(), err error) {
	var l net.Listener
	err = sandbox.InNetns(host, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(connectPort)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("serve at %s: %w", host, err)
	}
	go echo(l)
	return func() { _ = l.Close() }, nil
}

// connectFrom has a pod make connections to an external host, and hold some, until stop.
func (c *cluster) connectFrom(ctx context.Context, p *corev1.Pod, to netip.Addr, held int) (*ties, error) {
	j, err := c.inPod(ctx, p, "connect", netip.AddrPortFrom(to, connectPort).String(), strconv.Itoa(held))
	if err != nil {
		return nil, err
	}
	t := &ties{job: j, held: map[int]netip.Addr{}, broken: map[int]time.Time{}}
	go t.read(j.stdout)
	return t, nil
}

func (t *ties) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		t.mu.Lock()
		t.note(strings.Fields(lines.Text()))
		t.mu.Unlock()
	}
}

// note takes a line of connect in.
func (t *ties) note(words []string) {
	if len(words) < 3 {
		return
	}
	second, _ := strconv.ParseInt(words[2], 10, 64)
	switch first, _ := strconv.ParseInt(words[1], 10, 64); words[0] {
	case "held":
		t.held[int(first)], _ = netip.ParseAddr(words[3])
	case "broken":
		t.broken[int(first)] = time.Unix(0, second)
	case "new":
		a := attempt{start: time.Unix(0, first), end: time.Unix(0, second)}
		if source, err := netip.ParseAddr(words[3]); err == nil {
			a.source = source.Unmap()
		}
		t.attempts = append(t.attempts, a)
	}
}

// since are the attempts that started after a time, in the order of their starts.
func (t *ties) since(begin time.Time) []attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []attempt
	for _, a := range t.attempts {
		if a.start.After(begin) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b attempt) int { return a.start.Compare(b.start) })
	return out
}

// failed counts those without an answer.
func failed(all []attempt) int {
	n := 0
	for _, a := range all {
		if !a.source.IsValid() {
			n++
		}
	}
	return n
}

// firstAgain is when the first connection had its answer that started after one that failed; ok is false while there is none.
func firstAgain(all []attempt) (at time.Time, ok bool) {
	lost := false
	for _, a := range all {
		if !a.source.IsValid() {
			lost = true
		} else if lost && (!ok || a.end.Before(at)) {
			at, ok = a.end, true
		}
	}
	return at, ok
}

// noneFails is the start of the first connection after the last that failed; the given time if none failed.
func noneFails(all []attempt, begin time.Time) time.Time {
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].source.IsValid() {
			if i+1 == len(all) {
				return all[i].end
			}
			return all[i+1].start
		}
	}
	return begin
}

// steady waits until no new connection has failed for a while after a time, and every one of these sources was seen meanwhile, and no other.
func (t *ties) steady(ctx context.Context, after time.Time, sources ...netip.Addr) error {
	const while = 2 * time.Second
	if err := sleepUntil(ctx, after.Add(while+patience)); err != nil {
		return err
	}
	return until(ctx, time.Minute, 50*time.Millisecond, func() error {
		recent := t.since(time.Now().Add(-while - patience)) // the last ones have no answer yet
		seen := map[netip.Addr]int{}
		for _, a := range recent {
			seen[a.source]++
		}
		for _, s := range sources {
			if seen[s] == 0 {
				return fmt.Errorf("of the last %d connections none had source %s", len(recent), s)
			}
		}
		if len(seen) != len(sources) || len(recent) < int(while/apart)/2 {
			return fmt.Errorf("%d connections in %s, by source (invalid are those that failed): %v; want %v alone", len(recent), while, seen, sources)
		}
		return nil
	})
}

// holds waits until so many held connections are there, and returns their numbers by source.
func (t *ties) holds(ctx context.Context, want int) (map[netip.Addr][]int, error) {
	out := map[netip.Addr][]int{}
	return out, until(ctx, 20*time.Second, 50*time.Millisecond, func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.held) < want {
			return fmt.Errorf("%d of %d held connections could be made", len(t.held), want)
		}
		clear(out)
		for number, source := range t.held {
			out[source] = append(out[source], number)
		}
		return nil
	})
}

// brokenOf counts those of some held connections that have broken after a time.
func (t *ties) brokenOf(numbers []int, after time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, number := range numbers {
		if at, ok := t.broken[number]; ok && at.After(after) {
			n++
		}
	}
	return n
}
