package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

// watched is how long the traffic is looked at from the beginning of a planned move: the former node goes on
// translating for 2 s after it.
const watched = 5 * time.Second

// plannedMoves takes the label from the node that hosts an address, alternately of two, while a pod of a third opens a
// connection every 10 ms and sends a datagram every 2 ms over one flow. The floor is the longest gap of the flow in the
// same time with nothing going on.
func plannedMoves(ctx context.Context, l *lab) (err error) {
	s, err := l.site(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clear(context.WithoutCancel(ctx))) }()
	l.say("planned-move: %d runs", l.runs)
	m, err := s.plannedMoves(ctx, l)
	name := "planned-move/" + s.probe()
	for _, r := range []result{
		{name: name + "/failed-connections", runs: m.failed, none: true},
		{name: name + "/gap-of-an-open-flow", unit: "ms", runs: m.gap, base: m.quiet.median(), max: 100},
		{name: name + "/gap-with-nothing-going-on", unit: "ms", runs: m.quiet},
		{name: name + "/until-the-other-node-is-ready", unit: "ms", runs: m.ready},
		{name: name + "/failed-connections-with-nothing-going-on", runs: m.quietFailed},
	} {
		if len(r.runs) > 0 {
			l.report(r)
		}
	}
	return err
}

// moves are what planned moves cost: connections, and milliseconds.
type moves struct{ failed, quietFailed, gap, quiet, ready sample }

func (s *site) plannedMoves(ctx context.Context, l *lab) (moves, error) {
	var m moves
	seen, err := traffic.Receive(s.outside.Name)
	if err != nil {
		return m, err
	}
	defer seen.Close()
	stream, err := traffic.Stream(ctx, s.Cluster, s.pod, s.outside.IPs[0])
	if err != nil {
		return m, err
	}
	defer stream.Stop()
	connections, err := traffic.Connect(ctx, s.Cluster, s.pod, s.outside.IPs[0], 0)
	if err != nil {
		return m, err
	}
	defer connections.Stop()
	for i := range l.runs {
		story, err := s.plannedMove(ctx, seen, connections, &m)
		if err != nil {
			return m, fmt.Errorf("run %d: %w", i, err)
		}
		l.say("planned-move: %s", story)
	}
	return m, nil
}

// plannedMove is one, after a time of quiet as long; story is for the log.
func (s *site) plannedMove(ctx context.Context, seen *traffic.Receiver, connections *traffic.Connections,
	m *moves) (story string, err error) {
	if err := errors.Join(s.EgressNodes(ctx, s.Nodes()[0].Name, s.Nodes()[1].Name),
		connections.Steady(ctx, time.Now(), s.ips...)); err != nil {
		return "", err
	}
	where, err := s.held(ctx, time.Minute)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	gap, err := seen.LongestGap(ctx, watched)
	if err != nil {
		return "", err
	}
	m.quiet.addTime(gap)
	begin, quiet := time.Now(), begin
	if err := s.LabelEgress(ctx, where[s.ips[0]], false); err != nil {
		return "", err
	}
	ready := make(chan error, 1)
	go func() { ready <- s.leaves(ctx, where, begin, m) }()
	gap, err = seen.LongestGap(ctx, watched)
	if err := errors.Join(err, <-ready); err != nil {
		return "", err
	}
	m.gap.addTime(gap)
	time.Sleep(traffic.Patience) // the last attempts have their answer
	all := connections.Since(quiet)
	m.quietFailed.add(float64(traffic.Failed(before(all, begin))))
	m.failed.add(float64(traffic.Failed(connections.Since(begin))))
	return fmt.Sprintf("away from %s: longest gap %s, connections that failed started after %v", where[s.ips[0]], gap,
		failures(connections.Since(begin), begin)), nil
}

// failures are when the attempts that failed started, since begin.
func failures(all []traffic.Attempt, begin time.Time) []time.Duration {
	var out []time.Duration
	for _, a := range all {
		if !a.Source.IsValid() {
			out = append(out, a.Start.Sub(begin).Round(time.Millisecond))
		}
	}
	return out
}

// leaves waits until the address is held elsewhere than it was.
func (s *site) leaves(ctx context.Context, was map[netip.Addr]string, begin time.Time, m *moves) error {
	err := harness.Until(ctx, time.Minute, 5*time.Millisecond, func() error {
		now, err := s.held(ctx, time.Minute)
		if err == nil && now[s.ips[0]] == was[s.ips[0]] {
			err = fmt.Errorf("%s is still on %s", s.ips[0], now[s.ips[0]])
		}
		return err
	})
	m.ready.addTime(time.Since(begin))
	return err
}

// before are the attempts that started before a time.
func before(all []traffic.Attempt, end time.Time) []traffic.Attempt {
	for i, a := range all {
		if !a.Start.Before(end) {
			return all[:i]
		}
	}
	return all
}
