package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/test/harness"
)

const (
	podsANode = 200
	joinName  = "bench-join"
	joinLabel = "bench-join"
)

// joinSteps are how many pods are selected, one step after the other.
var joinSteps = [...]int{10, 1000, 5000}

// joining is what pods join.
type joining struct {
	figure string // its name
	ip     netip.Addr
	set    string // of the hosting node: other nodes' pods that leave there
	label  string // whose value yes has a pod join
	// follow waits until what else says who joins says so of so many pods; nil: nothing else does.
	follow func(ctx context.Context, n int) error
}

// joins times how long a pod takes to join an EgressIP that selects 10, 1,000 and 5,000 pods already: a running pod
// gets the label that selects it, and its own node and the hosting one must have it, until its packets have the egress
// IP. All pods are there from the start, so that the API server and Kubernetes' controllers have the same to do at each
// step.
func joins(ctx context.Context, l *lab) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := l.scene(ctx, 2)
	if err != nil {
		return err
	}
	defer s.close()
	nodes := fakeNodes(25)
	if err := s.EnsureFakeNodes(ctx, nodes); err != nil {
		return err
	}
	return errors.Join(s.joins(ctx, l, nodes), s.cleanJoins(context.WithoutCancel(ctx)))
}

func (s *scene) cleanJoins(ctx context.Context) error {
	return errors.Join(s.LabelPod(ctx, namespace, s.pod, joinLabel, ""), s.DeleteEgressIP(ctx, joinName),
		s.RemovePods(ctx, namespace, joinLabel), s.RemoveFakeNodes(ctx))
}

func (s *scene) joins(ctx context.Context, l *lab, nodes []*harness.FakeNode) error {
	pods := fakePods(nodes, func(i int) map[string]string { return map[string]string{joinLabel: joinGroup(i)} })
	if err := s.CreatePods(ctx, pods); err != nil {
		return err
	}
	ip := netip.MustParseAddr("172.18.0.240")
	e := egressIP(joinName, namespace, nil, ip)
	e.Spec.PodSelector = joiners(joinSteps[0])
	if err := s.CreateEgressIP(ctx, e); err != nil {
		return err
	}
	to := joining{ip: ip, set: podsOf(joinName), label: joinLabel}
	if err := s.joinsAnother(ctx, l, to); err != nil {
		return err
	}
	all, err := s.inSteps(ctx, l, joinSteps[:], func(n int) (joining, error) {
		to.figure = fmt.Sprintf("join/%d-pods", n)
		return to, s.selectPods(ctx, joinName, joiners(n))
	})
	if err == nil {
		reportJoins(l, "join/5000-to-10", all[0], all[2])
	}
	return err
}

// joinsAnother measures one pod more on a node that has another pod of the EgressIP already. Everywhere else the pod
// that joins is the EgressIP's first on its node, which has no set and no policy of it before.
func (s *scene) joinsAnother(ctx context.Context, l *lab, to joining) error {
	const other = "joined-before"
	if _, err := s.RunningPod(ctx, namespace, other, s.podNode); err != nil {
		return err
	}
	if err := s.LabelPod(ctx, namespace, other, joinLabel, "yes"); err != nil {
		return err
	}
	to.figure = "join/another-of-its-node"
	_, err := s.joinAt(ctx, l, joinSteps[0]+1, to)
	return errors.Join(err, s.LabelPod(context.WithoutCancel(ctx), namespace, other, joinLabel, ""))
}

// inSteps measures one pod more after each step, which begin makes, and counts what the hosting node holds.
func (s *scene) inSteps(ctx context.Context, l *lab, steps []int, begin func(n int) (joining, error)) (all []tally,
	err error) {
	var before []harness.Count
	for _, n := range steps {
		to, err := begin(n)
		if err != nil {
			return nil, err
		}
		t, err := s.joinAt(ctx, l, n, to)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", to.figure, err)
		}
		all = append(all, t)
		now, err := s.Counts(ctx, s.host)
		if err != nil {
			return nil, err
		}
		before = reportCounts(l, to.figure, before, now)
	}
	return all, nil
}

// joinGroup is the label of the i-th pod: the least step that selects it.
func joinGroup(i int) string {
	for _, n := range joinSteps {
		if i < n {
			return fmt.Sprint(n)
		}
	}
	return ""
}

// joiners selects the first n pods, and the one that joins.
func joiners(n int) metav1.LabelSelector {
	values := []string{"yes"}
	for _, step := range joinSteps {
		if step <= n {
			values = append(values, fmt.Sprint(step))
		}
	}
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: joinLabel,
		Operator: metav1.LabelSelectorOpIn, Values: values}}}
}

// selectPods gives an EgressIP another pod selector.
func (c *cluster) selectPods(ctx context.Context, name string, selector metav1.LabelSelector) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"podSelector": selector}})
	if err != nil {
		return err
	}
	return c.PatchEgressIP(ctx, name, patch)
}

// joinAt waits until n pods are in the hosting node's set, and measures one more.
func (s *scene) joinAt(ctx context.Context, l *lab, n int, to joining) (tally, error) {
	if err := harness.Until(ctx, time.Minute, 200*time.Millisecond,
		func() error { return s.selected(ctx, s.host, to.set, n) }); err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second)
	podFloor, err := s.floor(ctx, s.podNode, 30)
	if err != nil {
		return nil, err
	}
	hostFloor, err := s.floor(ctx, s.host, 30)
	if err != nil {
		return nil, err
	}
	return l.repeat(experiment{to.figure, []result{
		{name: "pod-node-written", unit: "ms", base: podFloor},
		{name: "pod-node-has-it", unit: "ms", base: podFloor, ratio: 5},
		{name: "host-written", unit: "ms", base: hostFloor},
		{name: "host-has-it", unit: "ms", base: hostFloor, ratio: 5},
		{name: "first-packet", unit: "ms", base: hostFloor},
	}, func(_ int, t tally) error { return s.joinOnce(ctx, t, n, to) }})
}

// podsOf is a hosting node's set of an EgressIP.
func podsOf(name string) string { return "egressip/" + name + "/pods.v4" }

// selected is nil when a set of a node has n pods or more.
func (c *cluster) selected(ctx context.Context, node, set string, n int) error {
	have, err := c.members(ctx, node, set)
	if err == nil && have < n {
		err = fmt.Errorf("set %s on %s has %d pods, not %d", set, node, have, n)
	}
	return err
}

// joinOnce labels the pod as one more than n, waits for everybody, and takes the label away again.
func (s *scene) joinOnce(ctx context.Context, t tally, n int, to joining) error {
	start := time.Now()
	if err := s.LabelPod(ctx, namespace, s.pod, to.label, "yes"); err != nil {
		return err
	}
	first, err := s.traffic.From(ctx, to.ip)
	if err == nil {
		err = changedZones(ctx, s.zones, s.parts(), start, t)
	}
	if err != nil {
		return err
	}
	t.addSince(start, map[string]time.Time{"first-packet": first})
	err = s.leave(ctx, n, to)
	time.Sleep(300*time.Millisecond + rand.N(200*time.Millisecond))
	return err
}

// leave takes the label away again, and waits until n have joined. What follows late, as EndpointSlices do on a busy
// machine, would have the pod join again after that: the next label would change nothing.
func (s *scene) leave(ctx context.Context, n int, to joining) error {
	follow := to.follow
	if follow == nil {
		follow = func(context.Context, int) error { return nil }
	}
	if err := follow(ctx, n+1); err != nil {
		return err
	}
	if err := s.LabelPod(ctx, namespace, s.pod, to.label, ""); err != nil {
		return err
	}
	if err := follow(ctx, n); err != nil {
		return err
	}
	_, err := s.traffic.From(ctx, s.podNodeIP)
	return err
}

// reportJoins tells how much more many pods cost than few.
func reportJoins(l *lab, name string, few, many tally) {
	l.reportTally(name, many, []result{
		{name: "pod-node-has-it", unit: "ms", base: few.of("pod-node-has-it").median(), ratio: 1.3},
		{name: "host-has-it", unit: "ms", base: few.of("host-has-it").median(), ratio: 1.3},
	})
}

// reportCounts tells what the hosting node holds, beside what it held with fewer pods.
func reportCounts(l *lab, name string, before, now []harness.Count) []harness.Count {
	for i, n := range now {
		r := result{name: name + "/count/" + n.Name, unit: "", runs: sample{float64(n.Number)}}
		if before != nil {
			r.base = float64(before[i].Number)
		}
		l.report(r)
	}
	return now
}
