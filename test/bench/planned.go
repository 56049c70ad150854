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
	s, err := l.site(ctx, namespace, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clear(context.WithoutCancel(ctx))) }()
	return s.plannedMoves(ctx, l)
}

func (s *site) plannedMoves(ctx context.Context, l *lab) error {
	seen, err := traffic.Receive(s.outside.Name)
	if err != nil {
		return err
	}
	defer seen.Close()
	stream, err := traffic.Stream(ctx, s.Cluster, s.pod, s.outside.IPs[0])
	if err != nil {
		return err
	}
	defer stream.Stop()
	connections, err := traffic.Connect(ctx, s.Cluster, s.pod, s.outside.IPs[0], 0)
	if err != nil {
		return err
	}
	defer connections.Stop()
	_, err = l.repeat(experiment{"planned-move/" + s.probe(), []result{
		{name: "failed-connections", none: true},
		{name: "gap-of-an-open-flow", unit: "ms", over: "gap-with-nothing-going-on", max: 100},
		{name: "gap-with-nothing-going-on", unit: "ms"},
		{name: "until-the-other-node-is-ready", unit: "ms"},
		{name: "failed-connections-with-nothing-going-on"},
	}, func(_ int, t tally) error {
		story, err := s.plannedMove(ctx, seen, connections, t)
		l.say("planned-move: %s", story)
		return err
	}})
	return err
}

// plannedMove is one, after a time of quiet as long; story is for the log.
func (s *site) plannedMove(ctx context.Context, seen *traffic.Receiver, connections *traffic.Connections,
	t tally) (story string, err error) {
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
	t.addTime("gap-with-nothing-going-on", gap)
	begin, quiet := time.Now(), begin
	if err := s.LabelEgress(ctx, where[s.ips[0]], false); err != nil {
		return "", err
	}
	ready := make(chan error, 1)
	go func() { ready <- s.leaves(ctx, where, begin, t) }()
	gap, err = seen.LongestGap(ctx, watched)
	if err := errors.Join(err, <-ready); err != nil {
		return "", err
	}
	t.addTime("gap-of-an-open-flow", gap)
	time.Sleep(traffic.Patience) // the last attempts have their answer
	all := connections.Since(quiet)
	t.add("failed-connections-with-nothing-going-on", float64(traffic.Failed(before(all, begin))))
	t.add("failed-connections", float64(traffic.Failed(connections.Since(begin))))
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
func (s *site) leaves(ctx context.Context, was map[netip.Addr]string, begin time.Time, t tally) error {
	err := harness.Until(ctx, time.Minute, 5*time.Millisecond, func() error {
		now, err := s.held(ctx, time.Minute)
		if err == nil && now[s.ips[0]] == was[s.ips[0]] {
			err = fmt.Errorf("%s is still on %s", s.ips[0], now[s.ips[0]])
		}
		return err
	})
	t.addTime("until-the-other-node-is-ready", time.Since(begin))
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
