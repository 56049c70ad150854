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

// serviceToll is what the loss of the host of an EgressService costs: milliseconds from the cut, connections from
// outside, and datagrams.
type serviceToll struct {
	both, in, status, label, datagram sample
	lost, wrong                       sample
}

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
	name := "egress-service/failover/" + in.probe()
	l.say("%s: %d runs", name, l.runs)
	out, t := &toll{}, &serviceToll{}
	defer func() { l.reportServiceToll(name, floor, out, t) }()
	for i := range l.runs {
		e := &serviceEpisode{entrance: in, toll: t, lab: l,
			out: &episode{outage: outage{addresses: 1}, site: in.site, toll: out, say: l.say}}
		if err := e.run(ctx); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
	}
	return nil
}

func (l *lab) reportServiceToll(name string, floor float64, out *toll, t *serviceToll) {
	for _, r := range []result{
		{name: name + "/both-directions", unit: "ms", runs: t.both, base: floor, max: 1500},
		{name: name + "/status-names-other", unit: "ms", runs: t.status, base: floor},
		{name: name + "/label-moves", unit: "ms", runs: t.label, base: floor},
		{name: name + "/datagrams-of-all-pods-out", unit: "ms", runs: t.datagram, base: floor},
		{name: name + "/first-connection-out", unit: "ms", runs: out.again, base: floor},
		{name: name + "/first-connection-in", unit: "ms", runs: t.in, base: floor},
		{name: name + "/failed-connections-out", runs: out.lost},
		{name: name + "/failed-connections-in", runs: t.lost},
		{name: name + "/failed-connections-out-at-return", runs: out.lostAtReturn},
		{name: name + "/datagrams-with-another-source", runs: t.wrong, none: true},
	} {
		if len(r.runs) > 0 {
			l.report(r)
		}
	}
}

// serviceEpisode is one power cut; what pods begin is an episode like that of an EgressIP.
type serviceEpisode struct {
	*entrance
	out     *episode
	clients *traffic.Connections
	toll    *serviceToll
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
	for _, x := range []struct {
		to *sample
		at time.Time
	}{{&e.toll.in, again}, {&e.toll.status, status}, {&e.toll.label, label}, {&e.toll.datagram, datagram}} {
		x.to.addTime(x.at.Sub(cut))
	}
	e.toll.lost.add(float64(traffic.Failed(all)))
	out := e.out.toll.again
	e.toll.both.add(max(out[len(out)-1], e.toll.in[len(e.toll.in)-1]))
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
	e.toll.wrong.add(float64(total))
	return err
}
