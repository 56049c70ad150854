package main

import (
	"context"
	"errors"
	"fmt"
)

const (
	controllerProgram = "egret-controller"
	// heldConnections are kept open over an outage.
	heldConnections = 40
)

// outage is a power cut of a node that hosts an egress IP, and what is down besides.
type outage struct {
	name      string
	addresses int  // of the EgressIP, on as many nodes
	onLeader  bool // the node that is lost runs the leading controller; else, with one IP, the other one
	noAPI     bool // controllers and API server are down
	own       bool // the pod has a network of its own
	// p90 and max are the goals, in milliseconds.
	p90, max float64
}

// measure cuts the power of a hosting node and gives it back, again and again, while a pod of another node opens a
// connection every 10 ms.
func (o outage) measure(ctx context.Context, l *lab) (err error) {
	s, err := l.site(ctx, spaceOf(o.own), o.addresses)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clear(context.WithoutCancel(ctx))) }()
	floor, err := s.floor(ctx, s.pod.Spec.NodeName, 30)
	if err != nil {
		return err
	}
	promised := result{name: "first-connection", unit: "ms", base: floor, max: o.max}
	if o.addresses > 1 {
		promised = result{name: "none-fails", unit: "ms", base: floor, p90: o.p90, max: o.max}
	}
	_, err = l.repeat(experiment{"failover/" + o.name + "/" + s.probe(), []result{
		promised,
		{name: "failed-connections"},
		{name: "failed-connections-at-return"},
		{name: "broken-on-other-ips-at-loss", none: true},
		{name: "broken-on-other-ips-at-return", none: true},
		{name: "broken-at-return-of-those-opened-meanwhile"},
	}, func(_ int, t tally) error { return o.run(ctx, l, s, t) }})
	return err
}

// run is one power cut, from everything at rest to everything at rest.
func (o outage) run(ctx context.Context, l *lab, s *site, t tally) error {
	e := &episode{outage: o, site: s, toll: t, say: l.say}
	defer e.stop()
	err := walk(ctx, []step{
		{"choose a node", e.choose}, {"open connections", e.open}, {"stop the API", e.stopAPI},
		{"lose the node", e.lose},
		{"after the loss", e.note}, {"open connections meanwhile", e.openMeanwhile}, {"start the API", e.startAPI},
		{"return the node", e.giveBack},
	})
	l.say("%s: %s lost: %s", o.name, e.victim, e.story)
	return err
}

// step is one of a run.
type step struct {
	what string
	do   func(context.Context) error
}

func walk(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	return nil
}
