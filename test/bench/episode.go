package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

// episode is one run of an outage.
type episode struct {
	outage
	*site
	toll       tally // milliseconds from the cut, and connections
	say        func(string, ...any)
	victim     string
	lost, left []netip.Addr         // addresses that the victim hosts, and those that others do
	onLeft     []int                // held connections of old that have addresses of others
	old, newer *traffic.Connections // connections from before the cut, and from while the node is away
	cut        time.Time
	story      string // for the log
}

func (e *episode) stop() {
	for _, t := range []*traffic.Connections{e.old, e.newer} {
		if t != nil {
			t.Stop()
		}
	}
}

// choose waits until all is at rest, and takes the node to lose.
func (e *episode) choose(ctx context.Context) error {
	if err := e.whole(ctx); err != nil {
		return err
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		return err
	}
	e.victim = e.Nodes()[0].Name
	if (leader == e.victim) != e.onLeader {
		e.victim = e.Nodes()[1].Name
	}
	if len(e.ips) == 1 {
		if err := e.moveTo(ctx, e.victim); err != nil {
			return err
		}
	}
	where, err := e.held(ctx, time.Minute)
	for _, ip := range e.ips {
		if where[ip] == e.victim {
			e.lost = append(e.lost, ip)
		} else {
			e.left = append(e.left, ip)
		}
	}
	return err
}

func (e *episode) open(ctx context.Context) (err error) {
	if e.old, err = traffic.Connect(ctx, e.Cluster, e.pod, e.outside.IPs[0], heldConnections); err != nil {
		return err
	}
	if err := e.old.Steady(ctx, time.Now(), e.ips...); err != nil {
		return err
	}
	bySource, err := e.old.Holds(ctx, heldConnections)
	for _, ip := range e.left {
		e.onLeft = append(e.onLeft, bySource[ip]...)
	}
	return err
}

// stopAPI takes the controllers and the control plane down, and gives everybody time to notice.
func (e *episode) stopAPI(ctx context.Context) error {
	if !e.noAPI {
		return nil
	}
	for _, n := range e.Nodes()[:2] {
		if err := e.StopProcess(ctx, n.Name, controllerProgram); err != nil {
			return err
		}
	}
	if err := e.StopControlPlane(ctx); err != nil {
		return err
	}
	return harness.SleepUntil(ctx, time.Now().Add(3*time.Second))
}

// startAPI also starts the controller of the node that stayed; the other boots with its own.
func (e *episode) startAPI(ctx context.Context) error {
	if !e.noAPI {
		return nil
	}
	if err := e.StartControlPlane(ctx); err != nil {
		return err
	}
	for _, n := range e.Nodes()[:2] {
		if n.Name == e.victim {
			continue
		}
		if err := e.StartProcess(ctx, n.Name, controllerProgram); err != nil {
			return err
		}
	}
	return nil
}

// lose cuts the power, and waits until connections do not fail any more.
func (e *episode) lose(ctx context.Context) error {
	e.cut = time.Now()
	if err := e.PowerOff(e.victim); err != nil {
		return err
	}
	if err := e.old.Steady(ctx, e.cut, e.sourcesWithout()...); err != nil {
		return err
	}
	// held connections that get no answer have broken by then
	return harness.SleepUntil(ctx, e.cut.Add(traffic.Heartbeat+time.Second))
}

// sourcesWithout are those that new connections have while the node is away: one IP moves to the other node, the second
// of two stays where it is.
func (e *episode) sourcesWithout() []netip.Addr {
	if len(e.left) == 0 {
		return e.ips
	}
	return e.left
}

// note takes the numbers of the loss.
func (e *episode) note(context.Context) error {
	all := e.old.Since(e.cut)
	again, ok := traffic.FirstAgain(all)
	if !ok {
		return fmt.Errorf("no connection failed when %s lost its power, or none succeeded since", e.victim)
	}
	settled := traffic.NoneFails(all, e.cut)
	e.toll.addSince(e.cut, map[string]time.Time{"first-connection": again, "none-fails": settled})
	e.toll.add("failed-connections", float64(traffic.Failed(all)))
	e.story = fmt.Sprintf("first connection after %s, none fails after %s, %d failed", again.Sub(e.cut),
		settled.Sub(e.cut), traffic.Failed(all))
	if len(e.left) > 0 {
		e.toll.add("broken-on-other-ips-at-loss", float64(e.old.BrokenOf(e.onLeft, e.cut)))
	}
	return nil
}

func (e *episode) openMeanwhile(ctx context.Context) (err error) {
	if e.newer, err = traffic.Connect(ctx, e.Cluster, e.pod, e.outside.IPs[0], heldConnections); err != nil {
		return err
	}
	_, err = e.newer.Holds(ctx, heldConnections)
	return err
}

// giveBack boots the node, waits until all is as before the cut, and takes the numbers of the return.
func (e *episode) giveBack(ctx context.Context) error {
	back := time.Now()
	if err := e.PowerOn(ctx, e.victim); err != nil {
		return err
	}
	if err := e.whole(ctx); err != nil {
		return err
	}
	if err := e.newer.Steady(ctx, time.Now(), e.ips...); err != nil {
		return err
	}
	if err := harness.SleepUntil(ctx, time.Now().Add(traffic.Heartbeat+time.Second)); err != nil {
		return err
	}
	e.toll.add("failed-connections-at-return", float64(traffic.Failed(e.newer.Since(back))))
	broken := float64(e.newer.BrokenOf(upTo(heldConnections), back))
	if len(e.left) == 0 { // the one IP stays where it is when the node returns
		e.toll.add("broken-on-other-ips-at-return", broken)
		return nil
	}
	e.toll.add("broken-at-return-of-those-opened-meanwhile", broken)
	others := e.old.BrokenOf(e.onLeft, back)
	if e.toll.add("broken-on-other-ips-at-return", float64(others)); others > 0 {
		e.blame(ctx, e.say, fmt.Sprintf("%d connections through addresses of other nodes than %s broke at its return",
			others, e.victim), back)
	}
	return nil
}
