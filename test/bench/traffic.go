package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
)

const (
	podsATraffic = 50 // of each EgressIP
	podsHere     = 2  // of these, on a real node: rows about one pod alone have no conjunction
	trafficNodes = 24 // that exist in the API only, and have the others
)

// byNetwork is a sandbox of two nodes and EgressIPs with networks: one node hosts them, the other has some of the pods
// of each.
type byNetwork struct {
	*cluster
	host, podNode string
	zones         map[string]*harness.Zone
	floors        map[string]float64 // milliseconds
}

// withTraffic measures with so many EgressIPs whose networks are those of the EgressIPTraffics that the bench makes.
func (l *lab) withTraffic(ctx context.Context, egressIPs int, measure func(context.Context, *byNetwork) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := l.sandbox(ctx, "-traffic", 2, sandbox.Egret, unprobed)
	if err != nil {
		return err
	}
	b := &byNetwork{cluster: c, host: c.Nodes()[0].Name, podNode: c.Nodes()[1].Name, zones: map[string]*harness.Zone{},
		floors: map[string]float64{}}
	l.say("traffic: %d EgressIPs of %d pods", egressIPs, podsATraffic)
	if err = b.fill(ctx, egressIPs); err == nil {
		err = measure(ctx, b)
	}
	for _, z := range b.zones {
		z.Stop()
	}
	return errors.Join(err, l.down(c.Options().Name))
}

func (b *byNetwork) nodes() []string { return []string{b.host, b.podNode} }

// fill makes pods and EgressIPs, and follows both nodes' Northbounds.
func (b *byNetwork) fill(ctx context.Context, egressIPs int) (err error) {
	if err := errors.Join(b.EgressNodes(ctx, b.host), b.EnsureNamespace(ctx, namespace)); err != nil {
		return err
	}
	if err := b.fillPods(ctx, egressIPs); err != nil {
		return err
	}
	if err := harness.Each(ctx, upTo(egressIPs), b.createNumber); err != nil {
		return err
	}
	for _, node := range b.nodes() {
		if b.zones[node], err = b.WatchZone(node); err != nil {
			return err
		}
	}
	return nil
}

// fillPods makes the pods of so many EgressIPs, some on the real node, the others on nodes that exist in the API only.
func (b *byNetwork) fillPods(ctx context.Context, egressIPs int) error {
	fakes := fakeNodes(trafficNodes)
	if err := b.EnsureFakeNodes(ctx, fakes); err != nil {
		return err
	}
	here, err := b.withoutKubelet(ctx, b.podNode)
	if err != nil {
		return err
	}
	var pods []*corev1.Pod
	for i := range egressIPs * podsHere {
		pods = append(pods, harness.FakePod(namespace, here, i, app(i%egressIPs)))
	}
	for i := range egressIPs * (podsATraffic - podsHere) {
		n := fakes[i%len(fakes)]
		pods = append(pods, harness.FakePod(namespace, n, i/len(fakes), app(i%egressIPs)))
	}
	return b.CreatePods(ctx, pods)
}

// createNumber makes the i-th EgressIP.
func (b *byNetwork) createNumber(ctx context.Context, i int) error {
	e := egressIP(fmt.Sprint("bench-", i), namespace, app(i), netip.AddrFrom4([4]byte{172, 18, 0, byte(110 + i)}))
	e.Spec.TrafficSelector = &metav1.LabelSelector{MatchLabels: trafficLabel}
	return b.CreateEgressIP(ctx, e)
}

var trafficLabel = map[string]string{"for": "bench"}

// network is the i-th of a kind; no two of them make a larger one together.
func network(kind, i int) v1.CIDR {
	return v1.CIDR(fmt.Sprintf("%d.%d.%d.0/24", kind, i/128, i%128*2))
}

// Kinds of networks: those that stay, and those that come and go.
const (
	staying = 20
	passing = 30
)

func networks(n int) (out []v1.CIDR) {
	for i := range n {
		out = append(out, network(staying, i))
	}
	return out
}

// settle waits until both agents have taken in what was made, and measures the floors.
func (b *byNetwork) settle(ctx context.Context) (err error) {
	for _, node := range b.nodes() {
		pid, err := b.PidOf(ctx, node, "egret-node")
		if err != nil {
			return err
		}
		if err := b.Rest(ctx, node, pid); err != nil {
			return err
		}
	}
	for _, node := range b.nodes() {
		if b.floors[node], err = b.floor(ctx, node, 30); err != nil {
			return err
		}
	}
	return nil
}

// higherFloor is what a change of both nodes costs at least.
func (b *byNetwork) higherFloor() float64 { return max(b.floors[b.host], b.floors[b.podNode]) }
