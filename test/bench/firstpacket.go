package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

// setting is where the pod is, by the number of its node, the second being the host; and how many pods of the namespace
// the EgressIP does not select.
type setting struct {
	name         string
	node, beside int
}

func settings() []setting {
	return []setting{{"other-node", 2, 0}, {"same-node", 1, 0}, {"beside-2000-pods", 2, 2_000},
		{"beside-10000-pods", 2, 10_000}}
}

// measure times from just before the EgressIP is created to its first packet at the external host.
func (v setting) measure(ctx context.Context, l *lab) error {
	s, err := l.scene(ctx, v.node)
	if err != nil {
		return err
	}
	defer s.close()
	return s.beside(ctx, v.beside, func() error { return s.firstPackets(ctx, l, v.name) })
}

// scene is a pod that sends to an external host without pause, and everything that watches it.
type scene struct {
	*cluster
	pod, podNode, host string // host is the node that egress IPs are assigned to
	podNodeIP          netip.Addr
	traffic            *traffic.Receiver
	zones              map[string]*harness.Zone
	sender             *harness.Job
}

// scene sets up a pod on a node of the three by number; the second node is the only egress node.
func (l *lab) scene(ctx context.Context, podNode int) (*scene, error) {
	c, err := l.sandbox(ctx, "", 3, sandbox.Egret)
	if err != nil {
		return nil, err
	}
	nodes, outside := c.Nodes(), c.ExternalHosts()[0]
	s := &scene{cluster: c, podNode: nodes[podNode].Name, podNodeIP: nodes[podNode].IPs[0], host: nodes[1].Name,
		zones: map[string]*harness.Zone{}}
	if err := c.EgressNodes(ctx, s.host); err != nil {
		return nil, err
	}
	s.pod = fmt.Sprint("sender-", podNode)
	p, err := c.RunningPod(ctx, namespace, s.pod, s.podNode)
	if err != nil {
		return nil, err
	}
	if s.traffic, err = traffic.Receive(outside.Name); err != nil {
		return nil, err
	}
	if s.sender, err = traffic.Stream(ctx, c.Cluster, p, outside.IPs[0]); err != nil {
		return s, err
	}
	return s, s.watch(ctx)
}

func (s *scene) watch(ctx context.Context) error {
	for _, node := range []string{s.host, s.podNode} {
		if s.zones[node] != nil {
			continue
		}
		z, err := s.WatchZone(node)
		if err != nil {
			return err
		}
		s.zones[node] = z
	}
	_, err := s.traffic.From(ctx, s.podNodeIP)
	return err
}

func (s *scene) close() {
	s.sender.Stop()
	s.traffic.Close()
	for _, z := range s.zones {
		z.Stop()
	}
}

// besideLabel is on pods that nothing selects.
const besideLabel = "bench-beside"

// beside measures while so many other pods of the namespace exist, in the API only.
func (s *scene) beside(ctx context.Context, pods int, measure func() error) error {
	if pods == 0 {
		return measure()
	}
	ctx, stop := context.WithCancel(ctx) // of what keeps the nodes alive
	defer stop()
	nodes := fakeNodes(pods / podsANode)
	err := s.EnsureFakeNodes(ctx, nodes)
	if err == nil {
		labels := map[string]string{besideLabel: ""}
		err = s.CreatePods(ctx, fakePods(nodes, func(int) map[string]string { return labels }))
	}
	if err == nil {
		time.Sleep(5 * time.Second)
		err = measure()
	}
	return errors.Join(err, s.RemovePods(ctx, namespace, besideLabel), s.RemoveFakeNodes(ctx))
}

// fakePods are podsANode pods on each node, with labels by their number.
func fakePods(nodes []*harness.FakeNode, labels func(i int) map[string]string) (pods []*corev1.Pod) {
	for _, n := range nodes {
		for i := range podsANode {
			pods = append(pods, harness.FakePod(namespace, n, i, labels(len(pods))))
		}
	}
	return pods
}

// firstPackets measures, from the request on, until the first packet; until the API server has the object, until the
// status names the node, and that node says that it holds the address; until both Northbounds are written, and the
// hypervisors have it.
func (s *scene) firstPackets(ctx context.Context, l *lab, name string) error {
	if err := s.LabelPod(ctx, namespace, s.pod, firstLabel, s.pod); err != nil {
		return err
	}
	f := newFollower(s.host, "")
	following, stop := context.WithCancel(ctx)
	defer stop()
	if err := f.watch(following, s.cluster); err != nil {
		return err
	}
	floor, err := s.floor(ctx, s.podNode, 30)
	if err != nil {
		return err
	}
	api, err := s.apiFloor(ctx, 30)
	if err != nil {
		return err
	}
	cpu, err := atRest() // until the first packet
	if err != nil {
		return err
	}
	results := []result{
		{of: firstPacket, unit: "ms", base: floor, ratio: 2.5},
		{name: "api-and-ovn", of: firstPacket, unit: "ms", base: api + floor},
	}
	for _, step := range []string{"created", "status-seen", "host-written", "host-has-it", "host-says-so",
		"pod-node-written", "pod-node-has-it"} {
		results = append(results, result{name: step, unit: "ms", base: floor})
	}
	_, err = l.repeat(experiment{"first-packet/" + name, results, func(i int, t tally) error {
		return s.firstPacket(ctx, f, cpu, i, t)
	}})
	if err == nil {
		cpu.report(l, "first-packet/"+name)
	}
	return err
}

// firstPacket is what a tally has the time of the first packet by.
const firstPacket = "first-packet"

// firstLabel is on the pod that the EgressIP selects.
const firstLabel = "bench-first"

// firstPacket is one run; afterwards the EgressIP is gone and the pod leaves with its node's address again.
func (s *scene) firstPacket(ctx context.Context, f *follower, cpu *cpuUse, i int, t tally) error {
	ip := netip.AddrFrom4([4]byte{172, 18, 0, byte(120 + i%100)})
	name := fmt.Sprint("bench-", time.Now().UnixNano())
	if err := cpu.begin(); err != nil {
		return err
	}
	start := time.Now()
	if err := s.CreateEgressIP(ctx, egressIP(name, namespace, map[string]string{firstLabel: s.pod}, ip)); err != nil {
		return err
	}
	created := time.Now()
	first, err := s.traffic.From(ctx, ip)
	if err == nil {
		err = cpu.end()
	}
	if err == nil {
		t.addSince(start, map[string]time.Time{firstPacket: first, "created": created})
		err = s.addSteps(ctx, f, name, start, t)
	}
	if err := errors.Join(err, s.DeleteEgressIP(ctx, name)); err != nil {
		return err
	}
	_, err = s.traffic.From(ctx, s.podNodeIP)
	time.Sleep(300*time.Millisecond + rand.N(200*time.Millisecond)) // all at rest, and no beat with anything periodic
	return err
}

// addSteps adds when each step was done.
func (s *scene) addSteps(ctx context.Context, f *follower, egressIP string, start time.Time, t tally) error {
	err := harness.Until(ctx, time.Minute, 5*time.Millisecond, func() error {
		assigned, held, err := f.times([]string{egressIP})
		if err == nil {
			t.addSince(start, map[string]time.Time{"status-seen": assigned, "host-says-so": held})
		}
		return err
	})
	if err != nil {
		return err
	}
	return changedZones(ctx, s.zones, s.parts(), start, t)
}

// parts are the nodes of a scene.
func (s *scene) parts() map[string]string {
	return map[string]string{"host": s.host, "pod-node": s.podNode}
}
