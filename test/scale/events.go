package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/test/harness"
)

// event is what is measured. do returns when what it began is done.
type event struct {
	name string
	do   func(ctx context.Context, c *cluster, run int) error
}

func events() []event {
	return []event{
		{"move, a pod on each node", func(ctx context.Context, c *cluster, run int) error {
			return c.move(ctx, everywhere, run)
		}},
		{"move, pods on 10 nodes", func(ctx context.Context, c *cluster, run int) error {
			return c.move(ctx, somewhere, run)
		}},
		{"pod start", func(ctx context.Context, c *cluster, run int) error { return c.startPod(ctx, run) }},
		{"a controller begins to lead", func(ctx context.Context, c *cluster, _ int) error {
			return c.standby.reads(ctx)
		}},
		{"node join", func(ctx context.Context, c *cluster, run int) error { return c.joinNode(ctx, run) }},
	}
}

// measureCluster measures all events in a cluster of that many nodes.
func (s options) measureCluster(ctx context.Context, nodes int, t *table) (err error) {
	say("%d nodes: control plane, nodes, EgressIPs, pods", nodes)
	c, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if e := c.close(); err == nil {
			err = e
		}
	}()
	if err := c.fill(ctx, nodes); err != nil {
		return err
	}
	say("%d nodes: %d agents", nodes, nodes)
	if err := c.startAgents(ctx); err != nil {
		return err
	}
	if err := c.startStandby(ctx); err != nil {
		return err
	}
	for _, e := range events() {
		if err := c.measure(ctx, e, t); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

func (c *cluster) measure(ctx context.Context, e event, t *table) error {
	say("%d nodes: %s", c.nodes, e.name)
	var runs []measured
	for run := range c.runs {
		if err := c.settle(ctx); err != nil {
			return err
		}
		before, err := c.figures()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := e.do(ctx, c, run); err != nil {
			return err
		}
		took := time.Since(began)
		if err := c.settle(ctx); err != nil {
			return err
		}
		after, err := c.figures()
		if err != nil {
			return err
		}
		runs = append(runs, measured{after.since(before), took})
	}
	t.add(c.nodes, e.name, median(runs))
	return nil
}

// measured is one run of an event.
type measured struct {
	figures
	took time.Duration
}

// median is the run whose bytes are in the middle: once a minute each watch has a bookmark, which is nobody's event.
func median(runs []measured) measured {
	slices.SortFunc(runs, func(a, b measured) int { return int(a.wire - b.wire) })
	return runs[len(runs)/2]
}

// settle waits until next to nothing is sent.
func (c *cluster) settle(ctx context.Context) error {
	last := int64(-1)
	return harness.Until(ctx, 5*time.Minute, 1500*time.Millisecond, func() error {
		now := c.counter.wire.Load()
		sent := now - last
		first := last < 0
		last = now
		if first || sent > int64(100*len(c.agents)) {
			return fmt.Errorf("%d bytes were sent in a second and a half", sent)
		}
		return nil
	})
}

// move has an EgressIP's address move to another of the hosts, and waits until the controller says that it is in place
// and its former node is needed no more.
func (c *cluster) move(ctx context.Context, name string, run int) error {
	to := nodeName(1 + run%(hosts-1))
	patch := fmt.Sprintf(`{"spec":{"egressNodeSelector":{"matchLabels":{%q:%q}}}}`, corev1.LabelHostname, to)
	if err := c.egret.EgressIP.Patch(types.MergePatchType).Resource("egressips").Name(name).Body([]byte(patch)).
		Do(ctx).Error(); err != nil {
		return err
	}
	return harness.Until(ctx, 2*time.Minute, 50*time.Millisecond, func() error {
		e := &v1.EgressIP{}
		if err := c.egret.EgressIP.Get().Resource("egressips").Name(name).Do(ctx).Into(e); err != nil {
			return err
		}
		if len(e.Status.Items) != 1 || e.Status.Items[0].Node != to || len(e.Status.Leaving) > 0 ||
			!meta.IsStatusConditionTrue(e.Status.Conditions, v1.ConditionReady) {
			return fmt.Errorf("EgressIP %s is not on %s yet: %+v", name, to, e.Status)
		}
		return nil
	})
}

// startPod makes a pod, and does what the scheduler, its node's agent in CNI ADD and its kubelet write, and what the
// agent asks.
func (c *cluster) startPod(ctx context.Context, run int) error {
	a := c.agents[hosts]
	n := &harness.FakeNode{Name: a.self}
	object, err := c.core.CoreV1().Nodes().Get(ctx, a.self, metav1.GetOptions{})
	if err != nil {
		return err
	}
	n.Subnet = kube.Node(object).Subnets[0]
	p := harness.FakePod(namespace, n, 100+run, map[string]string{"app": "none"})
	annotations := map[string]any{}
	for key, value := range p.Annotations {
		annotations[key] = value
	}
	p.Annotations, p.Spec.NodeName, p.Spec.SchedulerName = nil, "", "scale"
	made, err := c.core.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	bound := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Target: corev1.ObjectReference{Name: a.self}}
	if err := c.core.CoreV1().Pods(namespace).Bind(ctx, bound, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := add(ctx, a, made, annotations); err != nil {
		return err
	}
	p.Annotations = harness.FakePod(namespace, n, 100+run, nil).Annotations
	return c.markRunning(ctx, p)
}

// add asks and writes what an agent does in a CNI ADD.
func add(ctx context.Context, a *agent, p *corev1.Pod, annotations map[string]any) error {
	for _, ask := range []func() error{
		func() error { return a.api.Namespace(ctx, p.Namespace) },
		func() error { return a.api.ReadNow(ctx, kube.EgressIPs(), "") },
		func() error { return a.api.ReadNow(ctx, kube.EgressIPTraffics(), "") },
		func() error { return a.api.ReadNow(ctx, kube.EgressServices(), p.Namespace) },
		func() error { return a.api.AnnotatePod(ctx, p.Namespace, p.Name, string(p.UID), annotations) },
	} {
		if err := ask(); err != nil {
			return err
		}
	}
	return nil
}

// markRunning says of a pod what its kubelet does.
func (c *cluster) markRunning(ctx context.Context, p *corev1.Pod) error {
	patch := fmt.Sprintf(`{"status":{"phase":"Running","podIP":%[1]q,"podIPs":[{"ip":%[1]q}],`+
		`"conditions":[{"type":"Ready","status":"True"}]}}`, kube.Pod(p).IPs[0])
	_, err := c.core.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	return err
}

// joinNode registers a node, as a kubelet does, and starts its agent.
func (c *cluster) joinNode(ctx context.Context, _ int) error {
	i := c.nodes
	n, err := c.core.CoreV1().Nodes().Create(ctx, nodeObject(i), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	c.nodes++
	a, err := c.startAgent(n.Name)
	if err != nil {
		return err
	}
	if _, err := a.api.AnnotateNode(ctx, kube.HostAnnotations(facts(i))); err != nil {
		return err
	}
	if _, err := c.subnets(ctx); err != nil {
		return err
	}
	return c.waitForAgents(ctx)
}
