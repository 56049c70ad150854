package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/oracle"
	"github.com/egret-net/egret/test/traffic"
)

const (
	round    = 45 * time.Second // in which faults begin; rounds with a long fault last longer
	converge = 30 * time.Second // after the last fault of a round
	asking   = 100 * time.Millisecond
)

// run is one run of the program.
type run struct {
	cluster *cluster
	out     io.Writer
	seen    *traffic.Capture
	asked   *traffic.Asking
	right   *oracle.Oracle
	was     map[string]float64
	samples []sample   // one a round
	mu      sync.Mutex // of record
	record  *record
	failed  []string // the verdict so far
}

// newRun returns when all pods send as they should.
func newRun(ctx context.Context, c *cluster, out io.Writer) (*run, error) {
	r := &run{cluster: c, out: out, record: newRecord(c)}
	if err := r.listen(ctx); err != nil {
		return nil, err
	}
	if err := until(ctx, 2*time.Minute, func() error { return c.healthy(ctx) }); err != nil {
		return nil, err
	}
	for _, s := range r.record.senders {
		if err := c.createPod(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := until(ctx, 2*time.Minute, func() error { return r.healthy(ctx) }); err != nil {
		return nil, err
	}
	pause(ctx, 20*time.Second) // what a start leaves behind goes
	var err error
	r.was, err = c.least(ctx)
	r.takeSample(ctx)
	return r, err
}

func newRecord(c *cluster) *record {
	r := &record{senders: c.senders(), nodes: map[string]addresses{},
		addresses: map[string]addresses{}, holders: map[string]history[[]string]{},
		mayHave: map[netip.Addr][]string{}}
	for _, n := range c.Nodes() {
		r.nodes[n.Name] = n.IPs
	}
	for name, n := range egressIPs {
		for _, ip := range c.addresses(name, append(slices.Clone(n.usual), n.other...)) {
			r.mayHave[ip] = append(r.mayHave[ip], name)
		}
		r.addresses[name] = c.addresses(name, n.usual)
	}
	r.addresses[byService] = ingress
	return r
}

// listen captures packets, asks for addresses and follows the API until the program ends.
func (r *run) listen(ctx context.Context) (err error) {
	outside := r.cluster.ExternalHosts()[0]
	if _, err := traffic.Swallow(outside.Name); err != nil {
		return err
	}
	if r.seen, err = traffic.Listen(r.cluster.Cluster.Cluster); err != nil {
		return err
	}
	if r.asked, err = traffic.Ask(outside, r.everyAddress(), asking); err != nil {
		return err
	}
	r.right, err = oracle.Follow(ctx, r.cluster.Egret)
	return err
}

// everyAddress returns the addresses on the primary network that an EgressIP has or will have.
func (r *run) everyAddress() []netip.Addr {
	var out []netip.Addr
	for ip, names := range r.record.mayHave {
		if !slices.Contains(names, onLinks) {
			out = append(out, ip)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.out, clock(time.Now())+"  "+format+"\n", args...)
}

func (r *run) note(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// round has one schedule happen, waits for the cluster to converge and judges what was seen since the last.
func (r *run) round(ctx context.Context, number int, random *rand.Rand) error {
	r.say("round %d", number)
	begin := time.Now()
	was, err := harness.DropsOf(ctx, r.cluster.Cluster.Cluster)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { r.watch(watching) })
	err = r.perform(ctx, schedule(random, r.stage(), round))
	last := time.Now()
	if err == nil {
		if late := until(ctx, converge, func() error { return r.healthy(ctx) }); late != nil {
			r.fail("not within %s of the last fault: %v", converge, late)
			err = until(ctx, 3*time.Minute, func() error { return r.healthy(ctx) })
		}
	}
	r.say("converged after %s", time.Since(last).Round(10*time.Millisecond))
	stop()
	watch.Wait()
	room, unread := r.noRoom(ctx, begin, was)
	r.judge(room)
	r.takeSample(ctx)
	return errors.Join(err, unread)
}

func (r *run) stage() stage {
	s := stage{egressIPs: slices.Sorted(maps.Keys(egressIPs)), controllers: 2}
	for _, n := range r.cluster.Nodes() {
		s.nodes = append(s.nodes, n.Name)
	}
	for _, p := range slices.Sorted(maps.Keys(r.record.senders)) {
		if _, can := otherOf[r.record.senders[p].group[0].value]; can {
			s.pods = append(s.pods, p)
		}
	}
	return s
}

// perform does and undoes faults at their times; all are undone, whatever fails.
func (r *run) perform(ctx context.Context, all []fault) error {
	begin := time.Now()
	errs := make([]error, len(all))
	var tasks sync.WaitGroup
	for i, f := range all {
		tasks.Go(func() {
			pause(ctx, time.Until(begin.Add(f.at)))
			if ctx.Err() == nil {
				errs[i] = r.one(ctx, f)
			}
		})
	}
	tasks.Wait()
	return errors.Join(errs...)
}

func (r *run) one(ctx context.Context, f fault) error {
	w := window{fault: f, begin: time.Now(), end: time.Now().Add(time.Hour)}
	number := 0
	r.note(func() { number, r.record.windows = len(r.record.windows), append(r.record.windows, w) })
	follows := r.disturb(f, w.begin)
	err := r.do(ctx, f)
	r.say("%s", f)
	pause(ctx, time.Until(w.begin.Add(f.lasts)))
	err = errors.Join(err, r.undo(context.WithoutCancel(ctx), f))
	follows()
	r.note(func() { r.record.windows[number].end = time.Now() })
	if err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	return nil
}

// disturb tells the oracle that a fault keeps its node from following the API, and returns what says that it is undone.
func (r *run) disturb(f fault, begin time.Time) (undone func()) {
	after, behind := f.recovery()
	if !behind {
		return func() {}
	}
	end := r.right.Disturb(f.node, begin.Add(-before))
	return func() { end(time.Now().Add(after)) }
}

// watch writes down which nodes hold what, until ctx ends. While the API server is away, nobody can say.
func (r *run) watch(ctx context.Context) {
	for ctx.Err() == nil {
		for _, name := range append(slices.Collect(maps.Keys(egressIPs)), byService) {
			asked := time.Now()
			if nodes, err := r.cluster.holders(ctx, name); err == nil {
				r.note(func() { r.record.holders[name] = known(r.record.holders[name], asked, nodes) })
			}
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// known adds what was read to a history.
func known(h history[[]string], asked time.Time, nodes []string) history[[]string] {
	if len(h) > 0 && slices.Equal(h[len(h)-1].value, nodes) {
		return h
	}
	return append(h, change[[]string]{asked, time.Now(), nodes})
}

// healthy returns nil if the cluster is whole and every pod is seen at every address outside, with what is its source
// from now on.
func (r *run) healthy(ctx context.Context) error {
	if err := errors.Join(r.cluster.healthy(ctx), r.cluster.served(ctx)); err != nil {
		return err
	}
	count := map[traffic.Flow]int{}
	for _, x := range r.seen.Since(time.Now().Add(-time.Second)) {
		s := r.record.senders[x.Pod]
		if s != nil && x.Kind == "new" && slices.Contains(r.record.last(s), x.Src) {
			count[x.Flow()]++
		}
	}
	for name, s := range r.record.senders {
		for _, ip := range r.cluster.sinks(s.group.last()) {
			if n := count[traffic.Flow{Pod: name, Kind: "new", Dst: ip}]; n < 5 {
				return fmt.Errorf("%d packets of pod %s on %s to %s with one of %v in the last second",
					n, name, s.node, ip, r.record.last(s))
			}
		}
	}
	return nil
}

func (r *run) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.say("FAIL: %s", text)
	r.failed = append(r.failed, text)
}

// judge looks at what was seen since it did last. That switches had no room for noRoom frames is told, and excuses
// nothing: some are lost so in most rounds, of traffic that was disturbed.
func (r *run) judge(noRoom int) {
	r.record.seen, r.record.answers = r.seen.Since(time.Time{}), r.asked.Since(time.Time{})
	r.seen.Forget()
	r.asked.Forget()
	wrong, packets := r.record.wrong(r.right.Judge)
	lost, missing, excused := r.record.lost()
	twice, moving, late := r.record.twice(asking)
	for _, found := range [][]string{wrong, lost, twice} {
		for _, line := range found[:min(len(found), 20)] {
			r.say("  %s", line)
		}
	}
	r.say("%d packets: %d with a wrong source, %d lost by unaffected pods (%d by others), "+
		"%d answers of two machines (%d while addresses moved, the last %s after the fault), "+
		"switches had no room for %d frames",
		len(r.record.seen), packets, missing, excused, len(twice), moving, late.Round(time.Millisecond), noRoom)
	if packets+missing+len(twice) > 0 {
		r.fail("%d packets with a wrong source, %d lost by unaffected pods, %d answers of two machines",
			packets, missing, len(twice))
	}
	if err := r.seen.Complete(); err != nil {
		r.fail("%v", err)
	}
}

// end measures the nodes once more.
func (r *run) end(ctx context.Context) error {
	pause(ctx, settled)
	now, err := r.cluster.least(ctx)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		r.say("  %s: %.0f, was %.0f", name, now[name], r.was[name])
	}
	r.tellSlopes()
	more := grown(r.was, now)
	for _, line := range more {
		r.fail("%s", line)
	}
	if len(more) > 0 {
		r.tellOpenFiles(ctx)
	}
	return err
}

// pause sleeps, no longer than ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
