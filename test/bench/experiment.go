package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/test/harness"
)

// tally collects the samples of an experiment, by the ends of their figures' names.
type tally map[string]*sample

func (t tally) add(end string, v float64) {
	if t[end] == nil {
		t[end] = &sample{}
	}
	t[end].add(v)
}

// addTime adds milliseconds.
func (t tally) addTime(end string, d time.Duration) { t.add(end, float64(d.Microseconds())/1000) }

// addSince adds how long after start each step was done.
func (t tally) addSince(start time.Time, done map[string]time.Time) {
	for end, at := range done {
		t.addTime(end, at.Sub(start))
	}
}

// of returns what was collected for a figure.
func (t tally) of(end string) sample {
	if t[end] == nil {
		return nil
	}
	return *t[end]
}

// experiment makes a change again and again. Each run waits until the change has its effect, notes how long that took,
// and undoes the change.
type experiment struct {
	name    string
	results []result // their names are ends of names; the one without a name has the experiment's
	run     func(i int, t tally) error
}

// repeat measures, and prints what there is: an experiment that fails half-way still tells what it saw.
func (l *lab) repeat(e experiment) (tally, error) {
	l.say("%s: %d runs", e.name, l.runs)
	t := tally{}
	defer l.reportTally(e.name, t, e.results)
	for i := range l.runs {
		if err := e.run(i, t); err != nil {
			return t, fmt.Errorf("run %d: %w", i, err)
		}
	}
	return t, nil
}

func (l *lab) reportTally(name string, t tally, results []result) {
	for _, r := range results {
		end := r.of
		if end == "" {
			end = r.name
		}
		if r.runs = t.of(end); len(r.runs) == 0 {
			continue
		}
		if r.over != "" {
			r.base = t.of(r.over).median()
		}
		r.name = strings.TrimSuffix(name+"/"+r.name, "/")
		l.report(r)
	}
}

// changedZones adds when each node's Northbound was written after start, and when its hypervisor had that. The nodes
// are named by their part in the experiment.
func changedZones(ctx context.Context, zones map[string]*harness.Zone, nodes map[string]string, start time.Time,
	t tally) error {
	for part, node := range nodes {
		written, ready, err := zones[node].Change(ctx, start)
		if err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
		t.addSince(start, map[string]time.Time{part + "-written": written, part + "-has-it": ready})
	}
	return nil
}

// fakeNodes exist in the API only.
func fakeNodes(n int) []*harness.FakeNode {
	nodes := make([]*harness.FakeNode, n)
	for i := range nodes {
		nodes[i] = &harness.FakeNode{Name: fmt.Sprint("fake-", i)}
	}
	return nodes
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// egressIP selects pods of a namespace by labels.
func egressIP(name, space string, labels map[string]string, ips ...netip.Addr) *v1.EgressIP {
	e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, ip := range ips {
		e.Spec.EgressIPs = append(e.Spec.EgressIPs, ip.String())
	}
	e.Spec.NamespaceSelector.MatchLabels = map[string]string{corev1.LabelMetadataName: space}
	e.Spec.PodSelector.MatchLabels = labels
	return e
}

// members counts the members of a node's address set.
func (c *cluster) members(ctx context.Context, node, set string) (n int, err error) {
	out, err := c.ExecIn(ctx, node, "bash", "-c", `ovn-nbctl --bare --columns=addresses find Address_Set "$1" | wc -w`,
		"bash", fmt.Sprintf(`external_ids:"k8s.ovn.org/id"=%q`, set))
	if err == nil {
		_, err = fmt.Sscan(string(out), &n)
	}
	return n, err
}
