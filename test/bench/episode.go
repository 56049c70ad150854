package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// episode is one run of an outage.
type episode struct {
	outage
	*site
	toll       *toll
	say        func(string, ...any)
	victim     string
	lost, left []netip.Addr // addresses that the victim hosts, and those that others do
	onLeft     []int        // held connections of old that have addresses of others
	old, newer *ties        // connections from before the cut, and from while the node is away
	moments    *moments
	stopWatch  context.CancelFunc
	cut        time.Time
	story      string // for the log
}

func (e *episode) stop() {
	for _, t := range []*ties{e.old, e.newer} {
		if t != nil {
			t.stop()
		}
	}
	if e.stopWatch != nil {
		e.stopWatch()
	}
}

// choose waits until all is at rest, and takes the node to lose.
func (e *episode) choose(ctx context.Context) error {
	if err := e.whole(ctx); err != nil {
		return err
	}
	leader, err := e.leader(ctx)
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
	if e.old, err = e.connectFrom(ctx, e.pod, e.outside.IPs[0], heldConnections); err != nil {
		return err
	}
	if err := e.old.steady(ctx, time.Now(), e.ips...); err != nil {
		return err
	}
	bySource, err := e.old.holds(ctx, heldConnections)
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
	return sleepUntil(ctx, time.Now().Add(3*time.Second))
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
	watching, stop := context.WithCancel(ctx)
	e.stopWatch, e.moments = stop, newMoments()
	if !e.noAPI {
		if err := e.watchEgressIPs(watching, e.moments); err != nil {
			return err
		}
	}
	e.cut = time.Now()
	if err := e.PowerOff(e.victim); err != nil {
		return err
	}
	if err := e.old.steady(ctx, e.cut, e.sourcesWithout()...); err != nil {
		return err
	}
	return sleepUntil(ctx, e.cut.Add(heartbeat+time.Second)) // held connections that get no answer have broken by then
}

// sourcesWithout are those that new connections have while the node is away: one IP moves to the other node, the second of two stays where it is.
func (e *episode) sourcesWithout() []netip.Addr {
	if len(e.left) == 0 {
		return e.ips
	}
	return e.left
}

// note takes the numbers of the loss.
func (e *episode) note(ctx context.Context) error {
	all := e.old.since(e.cut)
	again, ok := firstAgain(all)
	if !ok {
		return fmt.Errorf("no connection failed when %s lost its power, or none succeeded since", e.victim)
	}
	settled := noneFails(all, e.cut)
	e.toll.again.addTime(again.Sub(e.cut))
	e.toll.settled.addTime(settled.Sub(e.cut))
	e.toll.lost.add(float64(failed(all)))
	e.story = fmt.Sprintf("first connection after %s, none fails after %s, %d failed", again.Sub(e.cut), settled.Sub(e.cut), failed(all))
	if len(e.left) > 0 {
		e.toll.atLoss.add(float64(e.old.brokenOf(e.onLeft, e.cut)))
		return nil
	}
	return e.noteMove(ctx)
}

// noteMove takes the steps on the way to the other node.
func (e *episode) noteMove(ctx context.Context) error {
	other := e.Nodes()[slices.IndexFunc(e.Nodes()[:2], func(n sandbox.Member) bool { return n.Name != e.victim })].Name
	status, err := e.moments.at(ctx, assignedTo(siteName, other))
	if err != nil {
		return err
	}
	holder, err := e.moments.at(ctx, heldBy(siteName, other))
	if err != nil {
		return err
	}
	e.toll.status.addTime(status.Sub(e.cut))
	e.toll.holder.addTime(holder.Sub(e.cut))
	e.story += fmt.Sprintf(", status after %s, held after %s", status.Sub(e.cut), holder.Sub(e.cut))
	return nil
}

func (e *episode) openMeanwhile(ctx context.Context) (err error) {
	if e.newer, err = e.connectFrom(ctx, e.pod, e.outside.IPs[0], heldConnections); err != nil {
		return err
	}
	_, err = e.newer.holds(ctx, heldConnections)
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
	if err := e.newer.steady(ctx, time.Now(), e.ips...); err != nil {
		return err
	}
	if err := sleepUntil(ctx, time.Now().Add(heartbeat+time.Second)); err != nil {
		return err
	}
	e.toll.lostAtReturn.add(float64(failed(e.newer.since(back))))
	held := make([]int, heldConnections)
	for i := range held {
		held[i] = i
	}
	broken := float64(e.newer.brokenOf(held, back))
	if len(e.left) == 0 { // the one IP stays where it is when the node returns
		e.toll.atReturn.add(broken)
		return nil
	}
	e.toll.newerBroke.add(broken)
	others := e.old.brokenOf(e.onLeft, back)
	if e.toll.atReturn.add(float64(others)); others > 0 {
		e.blame(ctx, e.say, fmt.Sprintf("%d connections through addresses of other nodes than %s broke at its return", others, e.victim), back)
	}
	return nil
}
