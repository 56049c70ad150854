package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic"
)

// firstPackets times from just before the EgressIP is created to its first packet at the external host, where the pod's
// node hosts the address and where another does.
func firstPackets(ctx context.Context, l *lab) error {
	for _, where := range []struct {
		name string
		node int
	}{{"other-node", 2}, {"same-node", 1}} {
		s, err := l.scene(ctx, where.node)
		if err != nil {
			return err
		}
		err = s.firstPackets(ctx, l, where.name)
		s.close()
		if err != nil {
			return err
		}
	}
	return nil
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

func (s *scene) firstPackets(ctx context.Context, l *lab, name string) error {
	l.say("first packet, %s: %d runs", name, l.runs)
	floor, err := s.floor(ctx, s.podNode, 30)
	if err != nil {
		return err
	}
	var total sample
	for i := range l.runs {
		took, err := s.firstPacket(ctx, i)
		if err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		total.addTime(took)
	}
	l.report(result{name: "first-packet/" + name, unit: "ms", runs: total, base: floor, ratio: 8})
	return nil
}

// firstPacket is one run; afterwards the EgressIP is gone and the pod leaves with its node's address again.
func (s *scene) firstPacket(ctx context.Context, i int) (time.Duration, error) {
	ip := netip.AddrFrom4([4]byte{172, 18, 0, byte(120 + i%100)})
	e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("bench-", time.Now().UnixNano())}}
	e.Spec.EgressIPs = []string{ip.String()}
	e.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": namespace}
	start := time.Now()
	if err := s.CreateEgressIP(ctx, e); err != nil {
		return 0, err
	}
	first, err := s.traffic.From(ctx, ip)
	if e := s.DeleteEgressIP(ctx, e.Name); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	_, err = s.traffic.From(ctx, s.podNodeIP)
	time.Sleep(300*time.Millisecond + rand.N(200*time.Millisecond)) // all at rest, and no beat with anything periodic
	return first.Sub(start), err
}
