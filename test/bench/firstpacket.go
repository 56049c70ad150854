package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/sandbox"
)

// stage is a part of the way from the API to the packet.
type stage struct {
	name string
	runs sample
}

// firstPackets times from just before the EgressIP is created to its first packet at the external host, where the pod's node hosts the
// address and where another does.
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
	traffic            *receiver
	moments            *moments
	zones              map[string]*zone
	sender             *job
	stopWatching       context.CancelFunc
}

// scene sets up a pod on a node of the three by number; the second node is the only egress node.
func (l *lab) scene(ctx context.Context, podNode int) (*scene, error) {
	c, err := l.sandbox(ctx, "", 3, sandbox.Egret)
	if err != nil {
		return nil, err
	}
	nodes, outside := c.Nodes(), c.ExternalHosts()[0]
	s := &scene{cluster: c, podNode: nodes[podNode].Name, podNodeIP: nodes[podNode].IPs[0], host: nodes[1].Name, moments: newMoments(), zones: map[string]*zone{}}
	if err := c.egressNodes(ctx, s.host); err != nil {
		return nil, err
	}
	s.pod = fmt.Sprint("sender-", podNode)
	p, err := c.runningPod(ctx, s.pod, s.podNode)
	if err != nil {
		return nil, err
	}
	if s.traffic, err = receive(outside.Name); err != nil {
		return nil, err
	}
	if s.sender, err = c.sendFrom(ctx, p, outside.IPs[0]); err != nil {
		return s, err
	}
	return s, s.watch(ctx)
}

func (s *scene) watch(ctx context.Context) error {
	ctx, s.stopWatching = context.WithCancel(ctx)
	if err := s.watchEgressIPs(ctx, s.moments); err != nil {
		return err
	}
	for _, node := range []string{s.host, s.podNode} {
		if s.zones[node] != nil {
			continue
		}
		z, err := s.watchZone(node)
		if err != nil {
			return err
		}
		s.zones[node] = z
	}
	_, err := s.traffic.from(ctx, s.podNodeIP)
	return err
}

func (s *scene) close() {
	s.stopWatching()
	s.sender.stop()
	s.traffic.close()
	for _, z := range s.zones {
		z.stop()
	}
}

func (s *scene) firstPackets(ctx context.Context, l *lab, name string) error {
	l.say("first packet, %s: %d runs", name, l.runs)
	floor, err := s.floor(ctx, s.podNode, 30)
	if err != nil {
		return err
	}
	var total sample
	var stages []*stage
	for i := range l.runs {
		took, err := s.firstPacket(ctx, i, &stages)
		if err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		total.addTime(took)
	}
	l.report(result{name: "first-packet/" + name, unit: "ms", runs: total, base: floor, ratio: 8})
	for _, st := range stages {
		l.report(result{name: "first-packet/" + name + "/" + st.name, unit: "ms", runs: st.runs, base: floor})
	}
	return nil
}

// firstPacket is one run; afterwards the EgressIP is gone and the pod leaves with its node's address again.
func (s *scene) firstPacket(ctx context.Context, i int, stages *[]*stage) (time.Duration, error) {
	ip := netip.AddrFrom4([4]byte{172, 18, 0, byte(120 + i%100)})
	e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("bench-", time.Now().UnixNano())}}
	e.Spec.EgressIPs = []string{ip.String()}
	e.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": namespace}
	start := time.Now()
	if err := s.createEgressIP(ctx, e); err != nil {
		return 0, err
	}
	created := time.Now()
	first, err := s.traffic.from(ctx, ip)
	if err == nil {
		err = s.noteStages(ctx, e.Name, start, created, first, stages)
	}
	if e := s.deleteEgressIP(ctx, e.Name); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	_, err = s.traffic.from(ctx, s.podNodeIP)
	time.Sleep(300*time.Millisecond + rand.N(200*time.Millisecond)) // all at rest, and no beat with anything periodic
	return first.Sub(start), err
}

// noteStages notes how long after the start each thing happened that the packet waited for.
func (s *scene) noteStages(ctx context.Context, name string, start, created, first time.Time, stages *[]*stage) error {
	statusAt, err := s.moments.at(ctx, assigned(name))
	if err != nil {
		return err
	}
	heldAt, err := s.moments.at(ctx, held(name))
	if err != nil {
		return err
	}
	hostWritten, hostReady, err := s.zones[s.host].change(ctx, start)
	if err != nil {
		return err
	}
	podWritten, podReady, err := s.zones[s.podNode].last(ctx, first)
	if err != nil {
		return err
	}
	for i, m := range []struct {
		name string
		at   time.Time
	}{
		{"1-api-answered", created}, {"2-status-seen", statusAt}, {"3-host-written", hostWritten}, {"4-host-has-it", hostReady},
		{"5-holder-seen", heldAt}, {"6-pod-node-written", podWritten}, {"7-pod-node-has-it", podReady}, {"8-first-packet", first},
	} {
		if i == len(*stages) {
			*stages = append(*stages, &stage{name: m.name})
		}
		(*stages)[i].runs.addTime(m.at.Sub(start))
	}
	return nil
}

func (c *cluster) createEgressIP(ctx context.Context, e *v1.EgressIP) error {
	return c.egret.EgressIP.Post().Resource("egressips").Body(e).Do(ctx).Error()
}

func (c *cluster) deleteEgressIP(ctx context.Context, name string) error {
	err := c.egret.EgressIP.Delete().Resource("egressips").Name(name).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// labelEgress makes a node an egress node, or none.
func (c *cluster) labelEgress(ctx context.Context, name string, is bool) error {
	if is {
		return c.labelNode(ctx, name, v1.LabelEgressAssignable, "")
	}
	return c.unlabelNode(ctx, name, v1.LabelEgressAssignable)
}

func (c *cluster) labelNode(ctx context.Context, name, key, value string) error {
	return c.patchNode(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value))
}

func (c *cluster) unlabelNode(ctx context.Context, name, key string) error {
	return c.patchNode(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, key))
}

func (c *cluster) patchNode(ctx context.Context, name, patch string) error {
	_, err := c.core.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
