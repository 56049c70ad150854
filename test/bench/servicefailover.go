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

// serviceFailover cuts the power of an EgressService's host and gives it back, again and again, while a pod of another
// node opens a connection to a host outside every 10 ms, that host one to the Service's address, and pods of all nodes
// send datagrams.
func serviceFailover(ctx context.Context, l *lab) (err error) {
	in, err := l.entrance(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.leave(context.WithoutCancel(ctx))) }()
	floor, err := in.floor(ctx, in.pod.Spec.NodeName, 30)
	if err != nil {
		return err
	}
	_, err = l.repeat(experiment{"egress-service/failover/" + in.probe(), []result{
		{name: "both-directions", unit: "ms", base: floor, max: 1500},
		{name: "status-names-other", unit: "ms", base: floor},
		{name: "label-moves", unit: "ms", base: floor},
		{name: "datagrams-of-all-pods-out", unit: "ms", base: floor},
		{name: "first-connection-out", of: "first-connection", unit: "ms", base: floor},
		{name: "first-connection-in", unit: "ms", base: floor},
		{name: "failed-connections-out", of: "failed-connections"},
		{name: "failed-connections-in"},
		{name: "failed-connections-out-at-return", of: "failed-connections-at-return"},
		{name: "datagrams-with-another-source", none: true},
	}, func(_ int, t tally) error {
		e := &serviceEpisode{entrance: in, toll: t, lab: l,
			out: &episode{outage: outage{addresses: 1}, site: in.site, toll: t, say: l.say}}
		return e.run(ctx)
	}})
	return err
}

// serviceEpisode is one power cut; what pods begin is an episode like that of an EgressIP.
type serviceEpisode struct {
	*entrance
	out     *episode
	clients *traffic.Connections
	toll    tally
	lab     *lab
}

func (e *serviceEpisode) run(ctx context.Context) error {
	defer e.out.stop()
	defer func() {
		if e.clients != nil {
			e.clients.Stop()
		}
	}()
	err := walk(ctx, []step{
		{"choose a node", e.out.choose}, {"open connections", e.out.open}, {"come in", e.comeIn},
		{"lose the node", e.out.lose}, {"go on coming in", e.goOn}, {"after the loss", e.out.note},
		{"after the loss, from outside", e.note}, {"open connections meanwhile", e.out.openMeanwhile},
		{"return the node", e.out.giveBack}, {"look at sources", e.sources},
	})
	e.lab.say("egress-service/failover: %s lost: %s", e.out.victim, e.out.story)
	return err
}

// comeIn has the host outside open connections, which the pod answers.
func (e *serviceEpisode) comeIn(ctx context.Context) (err error) {
	if e.clients, err = traffic.ConnectFrom(e.Cluster, e.outside.Name, e.ips[0]); err != nil {
		return err
	}
	return e.answered(ctx, time.Now())
}

func (e *serviceEpisode) goOn(ctx context.Context) error { return e.answered(ctx, e.out.cut) }

// answered waits until connections from outside have not failed for a while after a time.
func (e *serviceEpisode) answered(ctx context.Context, after time.Time) error {
	ip, err := netip.ParseAddr(e.pod.Status.PodIP)
	if err != nil {
		return err
	}
	return e.clients.Steady(ctx, after, ip)
}

// note takes the numbers of the loss, beside those of what pods begin.
func (e *serviceEpisode) note(ctx context.Context) error {
	cut, all := e.out.cut, e.clients.Since(e.out.cut)
	again, ok := traffic.FirstAgain(all)
	if !ok {
		return fmt.Errorf("no connection from outside failed when %s lost its power, or none succeeded since",
			e.out.victim)
	}
	var status, label time.Time
	err := harness.Until(ctx, time.Minute, 5*time.Millisecond, func() (err error) {
		status, label, err = e.moved(cut)
		return err
	})
	if err != nil {
		return err
	}
	datagrams := resumed(e.seen.Since(cut), cut, func(s traffic.Sighting) bool {
		return s.Pod != behindName+"-"+e.out.victim
	})
	var datagram time.Time
	for _, at := range datagrams {
		datagram = later(datagram, at)
	}
	e.toll.addSince(cut, map[string]time.Time{"first-connection-in": again, "status-names-other": status,
		"label-moves": label, "datagrams-of-all-pods-out": datagram})
	e.toll.add("failed-connections-in", float64(traffic.Failed(all)))
	out, in := e.toll.of("first-connection"), e.toll.of("first-connection-in")
	e.toll.add("both-directions", max(out[len(out)-1], in[len(in)-1]))
	e.out.story += fmt.Sprintf("; from outside after %s, %d failed; status after %s, label after %s", again.Sub(cut),
		traffic.Failed(all), status.Sub(cut), label.Sub(cut))
	for f, at := range datagrams {
		e.out.story += fmt.Sprintf("; %s %s after %s", f.Kind, f.Pod, at.Sub(cut))
	}
	return nil
}

// resumed is when each flow of some pods came again after its longest pause since a time.
func resumed(all []traffic.Sighting, since time.Time, of func(traffic.Sighting) bool) map[traffic.Flow]time.Time {
	out, last := map[traffic.Flow]time.Time{}, map[traffic.Flow]time.Time{}
	longest := map[traffic.Flow]time.Duration{}
	for _, s := range all {
		if !of(s) {
			continue
		}
		f := s.Flow()
		if pause := s.At.Sub(later(last[f], since)); pause > longest[f] {
			longest[f], out[f] = pause, s.At
		}
		last[f] = s.At
	}
	return out
}

// sources counts the datagrams of this run that had another source than the Service's address.
func (e *serviceEpisode) sources(ctx context.Context) error {
	if err := e.arrived(ctx, e.senders(), time.Now()); err != nil {
		return err
	}
	wrong, err := e.wrong(e.lab, "egress-service/failover")
	total := 0
	for _, n := range wrong {
		total += n
	}
	e.toll.add("datagrams-with-another-source", float64(total))
	return err
}
