package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
)

// adds times a bare pod from just before its creation to Ready, on Egret and on a plain ptp network of the same
// machine, in turns, so that both feel the same of whatever else the machine does.
func adds(ctx context.Context, l *lab) error {
	egret, err := l.sandbox(ctx, "", 3, sandbox.Egret)
	if err != nil {
		return err
	}
	ptp, err := l.sandbox(ctx, "-ptp", 1, sandbox.PTP)
	if err != nil {
		return err
	}
	l.say("add: %d pods each", l.runs)
	var times [2]sample
	for i := range l.runs + 1 {
		for n, c := range []*cluster{ptp, egret} {
			took, err := c.podReady(ctx, fmt.Sprint("add-", i))
			if err != nil {
				return fmt.Errorf("%s: %w", c.Options().CNI, err)
			}
			if i > 0 { // the first one finds cold caches
				times[n].addTime(took)
			}
		}
	}
	l.report(result{name: "add/ptp", unit: "ms", runs: times[0]})
	l.report(result{name: "add/egret-to-ptp", unit: "ms", runs: times[1], base: times[0].median(), ratio: 1.5})
	return l.down(ptp.Options().Name)
}

// podReady makes a pod on the last node, which runs no controller, and says how long it took to be Ready; then it
// removes it.
func (c *cluster) podReady(ctx context.Context, name string) (time.Duration, error) {
	if err := c.EnsureNamespace(ctx, namespace); err != nil {
		return 0, err
	}
	return c.podReadyIn(ctx, namespace, name)
}

// podReadyIn is the same in another namespace, which is there.
func (c *cluster) podReadyIn(ctx context.Context, namespace, name string) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	nodes, pods := c.Nodes(), c.Core.CoreV1().Pods(namespace)
	w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	start := time.Now()
	if _, err := pods.Create(ctx, harness.Bare(namespace, name, nodes[len(nodes)-1].Name, "localhost/pause:1"),
		metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	ready, err := seen(w, name,
		func(e watch.Event) bool { return e.Type != watch.Deleted && isReady(e.Object.(*corev1.Pod)) })
	if err != nil {
		return 0, err
	}
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return 0, err
	}
	_, err = seen(w, name, func(e watch.Event) bool { return e.Type == watch.Deleted })
	return ready.Sub(start), err
}

func seen(w watch.Interface, name string, what func(watch.Event) bool) (time.Time, error) {
	for e := range w.ResultChan() {
		if now := time.Now(); what(e) {
			return now, nil
		}
	}
	return time.Time{}, fmt.Errorf("pod %s did not become Ready, or did not go, within a minute", name)
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
