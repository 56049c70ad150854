package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/egret-net/egret/test/harness"
)

const (
	trafficIPs     = 100
	sharedNetworks = 10
	sharedName     = "bench-shared"
)

// trafficChange measures how long a change of the networks that 100 EgressIPs of 50 pods share takes until all nodes
// have it in force.
func trafficChange(ctx context.Context, l *lab) error {
	return l.withTraffic(ctx, trafficIPs, func(ctx context.Context, b *byNetwork) error {
		t := &changeTimes{byNetwork: b, sets: map[string]*setWatch{}}
		err := t.measure(ctx, l)
		for _, s := range t.sets {
			s.Stop()
		}
		return err
	})
}

// changeTimes is the measurement.
type changeTimes struct {
	*byNetwork
	sets map[string]*setWatch
}

func (t *changeTimes) measure(ctx context.Context, l *lab) error {
	for _, node := range t.nodes() {
		s, err := t.watchSets(node)
		if err != nil {
			return err
		}
		t.sets[node] = s
	}
	if err := t.CreateTraffic(ctx, sharedName, trafficLabel, networks(sharedNetworks)); err != nil {
		return err
	}
	for _, node := range t.nodes() {
		if _, err := t.sets[node].have(ctx, string(network(staying, 0))); err != nil {
			return err
		}
	}
	if err := t.settle(ctx); err != nil {
		return err
	}
	floor := t.higherFloor()
	_, err := l.repeat(experiment{"traffic/change", []result{
		{name: "all-written", unit: "ms", base: floor},
		{name: "host-has-it", unit: "ms", base: t.floors[t.host]},
		{name: "pod-node-has-it", unit: "ms", base: t.floors[t.podNode]},
		{name: "all-have-it", unit: "ms", base: floor, ratio: 10},
	}, func(i int, to tally) error { return t.run(ctx, i, to) }})
	return err
}

// run has another network take the place of one.
func (t *changeTimes) run(ctx context.Context, i int, to tally) error {
	now := string(network(passing, i))
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/destinationNetworks/0","value":%q}]`, now)
	start := time.Now()
	if err := t.PatchTraffic(ctx, sharedName, patch); err != nil {
		return err
	}
	var written, ready time.Time
	for _, node := range t.nodes() {
		w, err := t.sets[node].have(ctx, now)
		if err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
		r, err := t.readyAfter(ctx, node, start, w)
		if err != nil {
			return err
		}
		to.addSince(start, map[string]time.Time{t.role(node) + "-has-it": r})
		written, ready = later(written, w), later(ready, r)
	}
	to.addSince(start, map[string]time.Time{"all-written": written, "all-have-it": ready})
	return harness.SleepUntil(ctx, time.Now().Add(time.Second))
}

// readyAfter is when a node's hypervisor had what was last written. The monitor of the sets and that of the zone tell
// of one transaction in any order, and late where the machine is busy.
func (t *changeTimes) readyAfter(ctx context.Context, node string, start, written time.Time) (ready time.Time,
	err error) {
	if err := harness.SleepUntil(ctx, written.Add(100*time.Millisecond)); err != nil {
		return ready, err
	}
	return ready, harness.Until(ctx, time.Minute, 5*time.Millisecond, func() error {
		_, ready, err = t.zones[node].Last(ctx, time.Now())
		if err == nil && ready.Before(start) {
			err = errors.New("the zone's monitor has not told of the change yet")
		}
		return err
	})
}

// setWatch notes when address sets of a node's Northbound changed, and to what.
type setWatch struct {
	*harness.Job
	mu    sync.Mutex
	texts []string
	at    []time.Time
}

func (c *cluster) watchSets(node string) (*setWatch, error) {
	j, err := c.Monitor(node, "Address_Set", "addresses")
	if err != nil {
		return nil, err
	}
	s := &setWatch{Job: j}
	go s.read(j.Stdout)
	return s, nil
}

func (s *setWatch) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), ",", 3)
		if len(fields) < 3 || fields[1] == "old" || fields[1] == "delete" {
			continue
		}
		s.mu.Lock()
		s.texts, s.at = append(s.texts, fields[2]), append(s.at, time.Now())
		s.mu.Unlock()
	}
}

// have is when the set of the last of the EgressIPs got a network.
func (s *setWatch) have(ctx context.Context, network string) (last time.Time, err error) {
	return last, harness.Until(ctx, 3*time.Minute, 5*time.Millisecond, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for i, text := range s.texts {
			if strings.Contains(text, `"`+network+`"`) {
				n, last = n+1, s.at[i]
			}
		}
		if n < trafficIPs {
			return fmt.Errorf("%d sets have network %s", n, network)
		}
		return nil
	})
}
