package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/harness"
)

// busyLoops a core keep every process of the cluster waiting for its turn.
const busyLoops = 3

// falseAlarms counts what a cluster of which nothing is broken takes for broken, while all cores are busy: sessions
// between nodes that go down, and egress IPs that move. The third node has a pod that uses the IPs of the other two, so
// that there are sessions.
func falseAlarms(ctx context.Context, l *lab) (err error) {
	s, err := l.site(ctx, namespace, 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.clear(context.WithoutCancel(ctx))) }()
	l.say("false-alarms: %s of %d busy loops", l.busy, busyLoops*runtime.NumCPU())
	began := time.Now()
	a, err := s.underLoad(ctx, l.busy)
	if err != nil {
		return err
	}
	if a.downs+a.moves > 0 {
		s.blame(ctx, l.say, fmt.Sprintf("%d sessions went down and %d addresses moved; the machine stood still: %v",
			a.downs, a.moves, a.stalls), began)
	}
	raised := alarmsOf(s.logged(ctx, l.say, began))
	name := fmt.Sprintf("false-alarms/%s/%s", s.probe(), l.busy)
	l.report(result{name: name + "/alarms", runs: sample{float64(len(raised))}})
	l.report(result{name: name + "/alarms-while-the-machine-ran",
		runs: sample{float64(len(unexplained(raised, a.stalls)))}, none: true})
	l.report(result{name: name + "/sessions-down", runs: sample{float64(a.downs)}})
	l.report(result{name: name + "/moves", runs: sample{float64(a.moves)}, none: true})
	l.report(result{name: name + "/machine-stood-still", unit: "ms", runs: sample{longest(a.stalls)}})
	return nil
}

const (
	// In lookBack before an alarm the machine must have stood still on one core for half of what a session may miss:
	// the processes that send and receive, which three busy loops a core keep waiting anyway, have lost their turns.
	lookBack   = time.Second
	stoodStill = 150 * time.Millisecond
)

// alarmsOf are the times at which an agent took another node for dead, or got an answer of none any more.
func alarmsOf(lines []string) []time.Time {
	var out []time.Time
	for _, line := range lines {
		_, line, _ = strings.Cut(line, ": ")
		if strings.Contains(line, `"tunnel to another node"`) && strings.Contains(line, "state=down") ||
			strings.Contains(line, `"whether any other node answers" answers=false`) {
			out = append(out, loggedAt(line))
		}
	}
	return out
}

// unexplained are the alarms before which every core ran.
func unexplained(alarms []time.Time, stalls []stall) []time.Time {
	var out []time.Time
	for _, at := range alarms {
		lost := map[int]time.Duration{}
		for _, s := range stalls {
			if !s.ended.After(at) && at.Sub(s.ended) < lookBack {
				lost[s.core] += s.took
			}
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(lost)),
			func(d time.Duration) bool { return d >= stoodStill }) {
			out = append(out, at)
		}
	}
	return out
}

// alarms are what was seen during a load.
type alarms struct {
	downs, moves int
	stalls       []stall
}

// underLoad keeps the cores busy for a time.
func (s *site) underLoad(ctx context.Context, during time.Duration) (a alarms, err error) {
	before, err := s.sessions(ctx)
	if err == nil && len(before) == 0 {
		err = errors.New("no node watches another: no interface of Open vSwitch has a BFD session that is up")
	}
	if err != nil {
		return a, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	counted := &moveCount{where: map[string]string{}}
	if err := harness.WatchAll(watching, s.Egret.EgressIP, "egressips", counted.see); err != nil {
		return a, err
	}
	if a.stalls, err = burn(ctx, during); err != nil {
		return a, err
	}
	after, err := s.sessions(ctx)
	a.downs, a.moves = wentDown(before, after), counted.number()
	return a, err
}

// burn keeps all cores busy for a time, and says when the machine did not give them.
func burn(ctx context.Context, during time.Duration) ([]stall, error) {
	burning, stop := context.WithTimeout(ctx, during)
	defer stop()
	for range busyLoops * runtime.NumCPU() {
		c := exec.CommandContext(burning, "sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			return nil, err
		}
		defer func() { _ = c.Wait() }() // it is killed when the time is over
	}
	found, err := stalls(burning)
	return found, errors.Join(err, context.Cause(ctx))
}

// flaps lists interfaces with a BFD session that is up, and how often it has changed between up and down.
const flaps = `ovs-vsctl --bare --columns=name find Interface bfd_status:forwarding=true |
	while read -r name; do test -z "$name" || echo "$name $(ovs-vsctl get Interface "$name" bfd_status:flap_count | tr -d '"')"; done`

// sessions are those of all nodes that are up, by node and interface, with the number of their changes.
func (s *site) sessions(ctx context.Context) (map[string]int, error) {
	out := map[string]int{}
	for _, n := range s.Nodes() {
		text, err := s.ExecIn(ctx, n.Name, "bash", "-c", flaps)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			var name string
			var changes int
			if _, err := fmt.Sscan(line, &name, &changes); err != nil {
				return nil, fmt.Errorf("session %q of %s: %w", line, n.Name, err)
			}
			out[n.Name+" "+name] = changes
		}
	}
	return out, nil
}

// wentDown counts how often sessions that were up went down: each time they come up again is a change as well. One that
// is not up any more has gone down at least once.
func wentDown(before, after map[string]int) int {
	n := 0
	for name, changes := range before {
		now, up := after[name]
		if !up {
			n++
			continue
		}
		n += (now - changes + 1) / 2
	}
	return n
}

// moveCount counts changes of the nodes that addresses are assigned to.
type moveCount struct {
	mu    sync.Mutex
	where map[string]string
	moves int
}

func (m *moveCount) see(e *v1.EgressIP, _ time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := map[string]string{}
	for _, i := range e.Status.Items {
		now[i.EgressIP] = i.Node
	}
	for _, ip := range e.Spec.EgressIPs {
		if before, known := m.where[ip]; known && before != now[ip] {
			m.moves++
		}
		m.where[ip] = now[ip]
	}
}

func (m *moveCount) number() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moves
}
