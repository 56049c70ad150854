package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// together are the pods that start at one time.
const together = 10

// leaksAtStart starts pods that send from their first instruction on, ten at a time on all nodes, ten a run, and counts
// for each the datagrams that left the cluster with a source other than an egress IP.
func leaksAtStart(ctx context.Context, l *lab) (err error) {
	w, err := l.watchman(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.leave(ctx)) }()
	l.say("leaks/pod-starts: %d pods", l.runs*together)
	var leaked sample
	defer func() { l.reportLeaks("pod-starts/"+w.probe(), leaked) }()
	for i := range l.runs {
		if err := w.startPods(ctx, l, i, &leaked); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
	}
	return nil
}

// reportLeaks prints what there is: measurements that failed half-way still tell what they saw.
func (l *lab) reportLeaks(of string, leaked sample) {
	if len(leaked) > 0 {
		l.report(result{name: "leaks/" + of + "/datagrams-with-another-source", runs: leaked, none: true})
	}
}

// startPods is one batch, from no pod to no pod.
func (w *watchman) startPods(ctx context.Context, l *lab, run int, leaked *sample) error {
	var pods []*corev1.Pod
	for i := range together {
		pods = append(pods, w.sender(fmt.Sprintf("start-%d-%d", run, i), w.Nodes()[i%len(w.Nodes())].Name))
	}
	begin := time.Now()
	if err := w.CreatePods(ctx, pods); err != nil {
		return err
	}
	if err := w.arrived(ctx, pods, begin); err != nil {
		return err
	}
	if err := errors.Join(w.RemovePods(ctx, namespace, senders), w.gone(ctx)); err != nil {
		return err
	}
	wrong, err := w.wrong(l, fmt.Sprint("leaks/pod-starts run ", run))
	for _, p := range pods {
		leaked.add(float64(wrong[p.Name]))
	}
	return err
}
