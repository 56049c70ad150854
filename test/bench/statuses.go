package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
)

const (
	statusEgressIPs = 1000
	statusNodes     = 10
)

// statuses measures the controller alone: 1,000 EgressIPs on 10 nodes without a machine, one of which dies. A run begins when the
// request that makes the node NotReady is sent, and ends when a watch has seen the last status that named it name another. The floor
// is the same number of status patches of a client that has nothing to decide, 32 at a time as the controller's.
func statuses(ctx context.Context, l *lab) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := l.sandbox(ctx, "-statuses", 1, sandbox.Egret, unprobed)
	if err != nil {
		return err
	}
	s := &statusScene{cluster: c, where: map[string]string{}, changed: make(chan struct{})}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	l.say("statuses: %d runs", l.runs)
	var took, floors, moved sample
	for i := range l.runs {
		floor, err := s.floor(ctx, i)
		if err != nil {
			return fmt.Errorf("floor of run %d: %w", i, err)
		}
		if err := s.collectGarbage(ctx); err != nil {
			return fmt.Errorf("before run %d: %w", i, err)
		}
		d, n, err := s.lose(ctx)
		if err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		l.say("statuses: %d in %v, floor %v", n, d, floor)
		floors.addTime(floor)
		took.addTime(d)
		moved.add(float64(n))
	}
	l.report(result{name: "statuses/one of 10 nodes dies", unit: "ms", runs: took, base: floors.median(), value: 1000})
	l.report(result{name: "statuses/rewritten", unit: "", runs: moved})
	return l.down(c.Options().Name)
}

// collectGarbage has the API server collect what the floor and the run before left, as Go's own benchmarks do: no run pays for another.
func (s *statusScene) collectGarbage(ctx context.Context) error {
	return s.core.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").Do(ctx).Error()
}

// statusScene follows which node each EgressIP's status names.
type statusScene struct {
	*cluster
	nodes []*fakeNode

	mu      sync.Mutex
	where   map[string]string // by EgressIP
	changed chan struct{}     // closed and replaced at each change
}

func (s *statusScene) prepare(ctx context.Context) error {
	s.follow(ctx)
	if err := s.ensureNamespace(ctx, namespace); err != nil {
		return err
	}
	for i := range statusNodes {
		s.nodes = append(s.nodes, memoryNode(i))
	}
	if err := s.ensureFakeNodes(ctx, s.nodes); err != nil {
		return err
	}
	var all []*v1.EgressIP
	for i := range statusEgressIPs {
		e := &v1.EgressIP{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("bench-", i)}}
		e.Spec.EgressIPs = []string{netip.AddrFrom4([4]byte{172, 19, byte(100 + i/200), byte(10 + i%200)}).String()}
		e.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": namespace}
		e.Spec.PodSelector.MatchLabels = app(i)
		all = append(all, e)
	}
	err := each(ctx, all, func(ctx context.Context, e *v1.EgressIP) error {
		if err := s.createEgressIP(ctx, e); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.ready(ctx)
}

// ready has the nodes hold what they were assigned, and waits until every status says so.
func (s *statusScene) ready(ctx context.Context) error {
	if err := until(ctx, 2*time.Minute, time.Second, func() error { return s.hold(ctx) }); err != nil {
		return err
	}
	return until(ctx, 2*time.Minute, time.Second, func() error {
		list := &v1.EgressIPList{}
		if err := s.egret.EgressIP.Get().Resource("egressips").Do(ctx).Into(list); err != nil {
			return err
		}
		for _, e := range list.Items {
			for _, c := range e.Status.Conditions {
				if c.Type == v1.ConditionReady && c.Status != metav1.ConditionTrue {
					return fmt.Errorf("EgressIP %s is not ready: %s", e.Name, c.Message)
				}
			}
		}
		return nil
	})
}

// follow watches the statuses as the product's programs do: a busy API server closes the watch of a slow reader, which then lists anew.
func (s *statusScene) follow(ctx context.Context) {
	source := kube.NewSource(s.egret, slog.New(slog.DiscardHandler), kube.EgressIPs())
	go source.Run(ctx)
	go func() {
		w := world.New("", &world.Config{})
		for {
			select {
			case <-ctx.Done():
				return
			case change := <-source.Changes():
				for _, t := range change(w) {
					if e := w.EgressIP(t.Key); t.Kind == world.KindEgressIP && e != nil {
						s.see(e)
					}
				}
			}
		}
	}()
}

func (s *statusScene) see(e *world.EgressIP) {
	node := ""
	if len(e.Items) > 0 {
		node = e.Items[0].Node
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, is := s.where[e.Name]; !is || old != node {
		s.where[e.Name] = node
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// on counts the EgressIPs by node; changed is closed when that is no longer so.
func (s *statusScene) on() (count map[string]int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count = map[string]int{}
	for _, node := range s.where {
		count[node]++
	}
	return count, s.changed
}

// lose has the node with the most EgressIPs die, and brings it back when all have left it.
func (s *statusScene) lose(ctx context.Context) (took time.Duration, moved int, err error) {
	count, _ := s.on()
	victim := s.nodes[0].name
	for _, n := range s.nodes {
		if count[n.name] > count[victim] {
			victim = n.name
		}
	}
	start, err := s.die(ctx, victim)
	if err != nil {
		return 0, 0, err
	}
	for {
		now, changed := s.on()
		if now[victim] == 0 && now[""] == 0 {
			break
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			return 0, 0, fmt.Errorf("%d EgressIPs are still on node %s after a minute", now[victim], victim)
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
	took = time.Since(start)
	if err := s.revive(ctx, victim); err != nil {
		return 0, 0, err
	}
	return took, count[victim], s.ready(ctx)
}

// floor patches a tenth of the statuses, with a condition of our own: the controller lets that be.
func (s *statusScene) floor(ctx context.Context, run int) (time.Duration, error) {
	type write struct {
		name string
		body []byte
	}
	var writes []write
	list := &v1.EgressIPList{}
	if err := s.egret.EgressIP.Get().Resource("egressips").Do(ctx).Into(list); err != nil {
		return 0, err
	}
	for _, e := range list.Items[:statusEgressIPs/statusNodes] {
		mine := metav1.Condition{Type: "Bench", Status: metav1.ConditionTrue, Reason: fmt.Sprint("Run", run), LastTransitionTime: metav1.Now()}
		kept := []metav1.Condition{mine}
		for _, c := range e.Status.Conditions {
			if c.Type != mine.Type {
				kept = append(kept, c)
			}
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": kept}})
		if err != nil {
			return 0, err
		}
		writes = append(writes, write{e.Name, body})
	}
	start := time.Now()
	err := eachOf(ctx, 32, writes, func(ctx context.Context, w write) error {
		return s.egret.EgressIP.Patch(types.MergePatchType).Resource("egressips").Name(w.name).SubResource("status").Body(w.body).Do(ctx).Error()
	})
	return time.Since(start), err
}
