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
	// p90 and max are the goals, in milliseconds.
	p90, max float64
}

// toll is what the runs of an outage cost: milliseconds from the cut, and connections.
type toll struct {
	again, settled                                   sample
	lost, atLoss, lostAtReturn, atReturn, newerBroke sample
}

// measure cuts the power of a hosting node and gives it back, again and again, while a pod of another node opens a
// connection every 10 ms.
func (o outage) measure(ctx context.Context, l *lab) (err error) {
	s, err := l.site(ctx, o.addresses)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clear(context.WithoutCancel(ctx))) }()
	floor, err := s.floor(ctx, s.pod.Spec.NodeName, 30)
	if err != nil {
		return err
	}
	name := "failover/" + o.name + "/" + s.probe()
	l.say("%s: %d runs", name, l.runs)
	t := &toll{}
	defer func() { t.report(l, o, name, floor) }()
	for i := range l.runs {
		if err := o.run(ctx, l, s, t); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
	}
	return nil
}

// report prints a line for each number that there are runs of: an outage that failed half-way still tells what it saw.
func (t *toll) report(l *lab, o outage, name string, floor float64) {
	promised := result{name: name + "/first-connection", unit: "ms", runs: t.again, base: floor, max: o.max}
	if o.addresses > 1 {
		promised = result{name: name + "/none-fails", unit: "ms", runs: t.settled, base: floor, p90: o.p90, max: o.max}
	}
	for _, r := range []result{
		promised,
		{name: name + "/failed-connections", runs: t.lost},
		{name: name + "/failed-connections-at-return", runs: t.lostAtReturn},
		{name: name + "/broken-on-other-ips-at-loss", runs: t.atLoss, none: true},
		{name: name + "/broken-on-other-ips-at-return", runs: t.atReturn, none: true},
		{name: name + "/broken-at-return-of-those-opened-meanwhile", runs: t.newerBroke},
	} {
		if len(r.runs) > 0 {
			l.report(r)
		}
	}
}

// run is one power cut, from everything at rest to everything at rest.
func (o outage) run(ctx context.Context, l *lab, s *site, t *toll) error {
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
