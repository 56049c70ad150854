package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
	"github.com/egret-net/egret/test/harness"
)

const (
	reprogramIPs   = 1000
	reprogramNodes = 10
)

// reprogram measures what the death of a node costs the others' agents: 1,000 EgressIPs on ten nodes that exist in the
// API only and on a real one, one of the ten dies. The real one is given a share of its addresses; another real node
// has a pod of each. IPv6, for there all addresses fit into the network of the real nodes.
func reprogram(ctx context.Context, l *lab) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := l.sandbox(ctx, "-many", 3, sandbox.Egret, unprobed,
		func(o *sandbox.Options) { o.IPFamily = sandbox.IPv6 })
	if err != nil {
		return err
	}
	r := &reprogramming{cluster: c, target: c.Nodes()[1].Name, podNode: c.Nodes()[2].Name,
		zones: map[string]*harness.Zone{}}
	err = r.fill(ctx, l)
	if err == nil {
		err = r.measure(ctx, l)
	}
	for _, z := range r.zones {
		z.Stop()
	}
	return errors.Join(err, l.down(c.Options().Name))
}

type reprogramming struct {
	*cluster
	target, podNode string // the real node that hosts, and the one whose pods use
	fakes           []*harness.FakeNode
	zones           map[string]*harness.Zone
}

// fill makes nodes, EgressIPs, and the pods of those that the first node to die hosts.
func (r *reprogramming) fill(ctx context.Context, l *lab) error {
	for i := range reprogramNodes {
		r.fakes = append(r.fakes, reprogramNode(i))
	}
	if err := errors.Join(r.EnsureFakeNodes(ctx, r.fakes), r.EgressNodes(ctx, r.target),
		r.EnsureNamespace(ctx, namespace)); err != nil {
		return err
	}
	l.say("reprogram: %d EgressIPs", reprogramIPs)
	if err := harness.Each(ctx, upTo(reprogramIPs), r.createNumber); err != nil {
		return err
	}
	if err := harness.Until(ctx, 2*time.Minute, time.Second, func() error { return r.hold(ctx) }); err != nil {
		return err
	}
	for _, node := range []string{r.target, r.podNode} {
		z, err := r.WatchZone(node)
		if err != nil {
			return err
		}
		r.zones[node] = z
	}
	return r.fillPods(ctx)
}

// reprogramNode publishes what a node's agent would.
func reprogramNode(i int) *harness.FakeNode {
	name := fmt.Sprint("fake-", i)
	primary := netip.MustParsePrefix(fmt.Sprintf("fc00:f853:ccd:e793::f:%x/64", i+1))
	facts := kube.HostFacts{
		Zone: name, ChassisID: name, Mode: world.SharedGateway, Bridge: "breth0",
		UplinkMAC:     fmt.Sprintf("02:00:ac:13:00:%02x", i),
		ManagementMAC: "0a:58:0a:f4:00:02", Primary: []netip.Prefix{primary}, HostCIDRs: []netip.Prefix{primary},
		Gateways: []netip.Addr{netip.MustParseAddr("fc00:f853:ccd:e793::1")},
	}
	return &harness.FakeNode{Name: name, Annotations: kube.HostAnnotations(facts),
		Labels: map[string]string{v1.LabelEgressAssignable: ""}}
}

func (r *reprogramming) createNumber(ctx context.Context, i int) error {
	ip := netip.MustParseAddr(fmt.Sprintf("fc00:f853:ccd:e793::e:%x", i+1))
	return r.CreateEgressIP(ctx, egressIP(fmt.Sprint("bench-", i), namespace, app(i), ip))
}

// fillPods makes a pod on the real node for each EgressIP of the first fake node.
func (r *reprogramming) fillPods(ctx context.Context) error {
	node, err := r.withoutKubelet(ctx, r.podNode)
	if err != nil {
		return err
	}
	where, err := r.where(ctx)
	if err != nil {
		return err
	}
	var pods []*corev1.Pod
	for name, at := range where {
		var i int
		if _, err := fmt.Sscanf(name, "bench-%d", &i); err != nil || at != r.fakes[0].Name {
			continue
		}
		pods = append(pods, harness.FakePod(namespace, node, len(pods), app(i)))
	}
	return r.CreatePods(ctx, pods)
}

// withoutKubelet has a real node's pods be objects alone: its kubelet, which would start them, is stopped, and its
// Lease renewed until ctx ends.
func (c *cluster) withoutKubelet(ctx context.Context, name string) (*harness.FakeNode, error) {
	if err := c.StopProcess(ctx, name, "kubelet"); err != nil {
		return nil, err
	}
	node := &harness.FakeNode{Name: name}
	go c.RenewLeases(ctx, []*harness.FakeNode{node})
	n, err := c.Core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	node.Subnet = kube.Node(n).Subnets[0]
	return node, nil
}

// where says which node each EgressIP's address is assigned to.
func (r *reprogramming) where(ctx context.Context) (map[string]string, error) {
	all, err := r.EgressIPs(ctx)
	out := map[string]string{}
	for _, e := range all {
		for _, i := range e.Status.Items {
			out[e.Name] = i.Node
		}
	}
	return out, err
}

func (r *reprogramming) measure(ctx context.Context, l *lab) error {
	targetFloor, err := r.floor(ctx, r.target, 30)
	if err != nil {
		return err
	}
	podFloor, err := r.floor(ctx, r.podNode, 30)
	if err != nil {
		return err
	}
	_, err = l.repeat(experiment{"reprogram", []result{
		{name: "statuses-name-others", unit: "ms", value: 1000},
		{name: "target-has-it", unit: "ms", base: targetFloor, ratio: 10},
		{name: "target-says-so", unit: "ms", base: targetFloor},
		{name: "addresses-moved-to-target"},
		{name: "pod-node-has-it", unit: "ms", base: podFloor, ratio: 10},
	}, func(_ int, t tally) error { return r.run(ctx, t) }})
	return err
}

// run has the first fake node die, and puts all back as it was.
func (r *reprogramming) run(ctx context.Context, t tally) error {
	before, err := r.where(ctx)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	victim := r.fakes[0].Name
	f := newFollower(r.target, victim)
	if err := f.watch(watching, r.cluster); err != nil {
		return err
	}
	asked, err := r.Die(ctx, victim)
	if err != nil {
		return err
	}
	given, err := r.left(ctx, victim, before)
	if err != nil {
		return err
	}
	if err := r.timeStatuses(ctx, f, before, asked, t); err != nil {
		return err
	}
	if err := r.timeTarget(ctx, f, given, t); err != nil {
		return err
	}
	if err := r.hold(ctx); err != nil {
		return err
	}
	if err := r.timePods(ctx, time.Now(), t); err != nil {
		return err
	}
	return r.putBack(ctx, victim, before)
}

// left waits until all that a node hosted is assigned to others, and lists what the target was given.
func (r *reprogramming) left(ctx context.Context, victim string, before map[string]string) (given []string, err error) {
	return given, harness.Until(ctx, time.Minute, 50*time.Millisecond, func() error {
		given = nil
		now, err := r.where(ctx)
		if err != nil {
			return err
		}
		for name, was := range before {
			switch {
			case was == victim && (now[name] == victim || now[name] == ""):
				return fmt.Errorf("EgressIP %s is on %q", name, now[name])
			case was == victim && now[name] == r.target:
				given = append(given, name)
			}
		}
		return nil
	})
}

// timeStatuses: from just before the request that makes the node NotReady, until a watch has seen the last status that
// named it name another.
func (r *reprogramming) timeStatuses(ctx context.Context, f *follower, before map[string]string,
	asked time.Time, t tally) error {
	return harness.Until(ctx, time.Minute, 20*time.Millisecond, func() error {
		last, err := f.left(before)
		if err == nil {
			t.addSince(asked, map[string]time.Time{"statuses-name-others": last})
		}
		return err
	})
}

// timeTarget: from the last status that gives the target an address of the dead node, until its hypervisor has what it
// wrote last before it said that it holds all of them; and until it said so.
func (r *reprogramming) timeTarget(ctx context.Context, f *follower, given []string, t tally) error {
	var assigned, held time.Time
	err := harness.Until(ctx, time.Minute, 20*time.Millisecond, func() (err error) {
		assigned, held, err = f.times(given)
		return err
	})
	if err != nil {
		return err
	}
	_, ready, err := r.zones[r.target].Last(ctx, held)
	t.addSince(assigned, map[string]time.Time{"target-has-it": ready, "target-says-so": held})
	t.add("addresses-moved-to-target", float64(len(given)))
	return err
}

// timePods: from the last report of the new holders, until the hypervisor of the pods' node has what it wrote then.
func (r *reprogramming) timePods(ctx context.Context, reported time.Time, t tally) error {
	if err := harness.SleepUntil(ctx, reported.Add(time.Second)); err != nil {
		return err
	}
	_, ready, err := r.zones[r.podNode].Last(ctx, reported.Add(time.Second))
	if err == nil && ready.Before(reported) {
		err = fmt.Errorf("the pods' node wrote nothing after the new holders were ready")
	}
	t.addSince(reported, map[string]time.Time{"pod-node-has-it": ready})
	return err
}

// putBack has the dead node return, and the EgressIPs that it hosted made anew: it is the one that hosts least, so that
// all go to it.
func (r *reprogramming) putBack(ctx context.Context, victim string, before map[string]string) error {
	if err := r.Revive(ctx, victim); err != nil {
		return err
	}
	var moved []int
	for name, was := range before {
		var i int
		if _, err := fmt.Sscanf(name, "bench-%d", &i); err == nil && was == victim {
			moved = append(moved, i)
		}
	}
	slices.Sort(moved)
	if err := harness.Each(ctx, moved,
		func(ctx context.Context, i int) error { return r.DeleteEgressIP(ctx, fmt.Sprint("bench-", i)) }); err != nil {
		return err
	}
	if err := harness.Each(ctx, moved, r.createNumber); err != nil {
		return err
	}
	if err := harness.Until(ctx, time.Minute, 200*time.Millisecond, func() error { return r.hold(ctx) }); err != nil {
		return err
	}
	return harness.SleepUntil(ctx, time.Now().Add(4*time.Second)) // former holders let go after 2 s
}
